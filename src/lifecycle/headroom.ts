import type { Emit } from '../domain/events.ts';
import type { Profile } from '../domain/profile.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';

export interface HeadroomOptions {
  readonly runtime: Pick<ContainerRuntime, 'resources'>;
  readonly profiles: readonly Profile[];
  /** 0: no limit. */
  readonly maxSandboxes: number;
  readonly emit: Emit;
}

/** Warns, once, where the engine's memory does not do for as many of the largest sandboxes as the limit lets in. */
export class Headroom {
  readonly #options: HeadroomOptions;
  #looked = false;

  constructor(options: HeadroomOptions) {
    this.#options = options;
  }

  /** Does nothing once the engine has answered. Rejects when it does not. */
  async look(): Promise<void> {
    const { runtime, profiles, maxSandboxes, emit } = this.#options;
    if (this.#looked || maxSandboxes === 0) return;
    const [first, ...others] = profiles;
    if (first === undefined) return;
    const { memoryBytes } = await runtime.resources();
    this.#looked = true;
    const most = (a: Profile, b: Profile): Profile => (b.resources.memoryBytes > a.resources.memoryBytes ? b : a);
    const largest = others.reduce(most, first);
    const neededBytes = maxSandboxes * largest.resources.memoryBytes;
    if (neededBytes <= memoryBytes) return;
    const about = { maxSandboxes, profile: largest.name, neededBytes, engineBytes: memoryBytes };
    emit({ type: 'capacity-exceeds-engine', ...about });
  }
}
