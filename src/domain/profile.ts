/** A named template for containers. Clients choose one by name; they never choose an image. */
export interface Profile {
  readonly name: string;
  readonly image: string;
  readonly pull: 'always' | 'if-missing' | 'never';
  readonly registryAuth: { readonly username: string; readonly password: string } | null;
  readonly onSpecChange: 'keep' | 'replace';
  /** The port that the sandbox listens on, inside the container. */
  readonly port: number;
  readonly readiness: { readonly path: string; readonly timeoutMs: number };
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly resources: {
    readonly memoryBytes: number;
    readonly cpus: number;
    readonly pids: number;
    readonly shmBytes: number;
  };
  readonly security: {
    readonly readOnlyRoot: boolean;
    readonly capAdd: readonly string[];
    /** `default`, `unconfined`, or a profile's JSON text. */
    readonly seccomp: string;
    /** OCI runtime by the engine's name for it; null: the engine's default. */
    readonly runtime: string | null;
  };
  readonly spares: number;
}

export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}
