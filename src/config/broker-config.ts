import type { Profile } from '../domain/profile.ts';
import type { Settings } from './schema.ts';

type Docker = Settings['runtime']['docker'];
type Replace<T, By> = Omit<T, keyof By> & Readonly<By>;

/**
 * The whole configuration, checked and complete. Durations are milliseconds in names that end in `Ms`, sizes are bytes
 * in names that end in `Bytes`. Every key of the file is in it under its own path, except the engine's four
 * (`socketPath, host, port, tls`), which are `runtime.docker.engine`.
 */
export type BrokerConfig = Replace<
  Settings,
  {
    /** `url` is the file's, else REDIS_URL's. With sentinels only its user, password and database count. */
    store: Replace<Settings['store'], { type: 'memory' | 'redis' }>;
    runtime: {
      readonly docker: Replace<
        Omit<Docker, 'socketPath' | 'host' | 'port' | 'tls'>,
        { engine: EngineAddress; bindHost: string; probeHost: string }
      >;
    };
    shutdown: Replace<Settings['shutdown'], { sandboxes: 'keep' | 'destroy' }>;
    profiles: ReadonlyMap<string, Profile>;
  }
>;

/** Where the engine listens. Certificates and key as PEM text. */
export type EngineAddress =
  | { readonly kind: 'socket'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: EngineTls | null };

export interface EngineTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}
