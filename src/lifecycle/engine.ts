import { BrokerError } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { EngineMark } from '../domain/ids.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';

export interface EngineOptions {
  readonly store: Pick<LeaseStore, 'settleEngine'>;
  readonly runtime: Pick<ContainerRuntime, 'mark'>;
  readonly emit: Emit;
}

/**
 * Which engine this is. Only the engine that a record names can say that its container is gone, and a deployment has
 * one engine: whoever sees another one concludes nothing from what it shows.
 */
export class Engine {
  readonly #options: EngineOptions;
  #settled: EngineMark | null = null;
  #mismatch = false;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /** The mark that engine and store agree on. Asks both when they have not been asked before. */
  async mark(): Promise<EngineMark> {
    return this.#settled ?? this.settle();
  }

  /**
   * As `mark`, for whoever can go on without an answer: `unknown` when engine or store is silent. Another engine than
   * the deployment's still rejects.
   */
  async markOrUnknown(): Promise<{ kind: 'known'; mark: EngineMark } | { kind: 'unknown'; cause: unknown }> {
    try {
      return { kind: 'known', mark: await this.mark() };
    } catch (cause) {
      if (this.#mismatch) throw cause;
      return { kind: 'unknown', cause };
    }
  }

  /**
   * Asks engine and store anew. Rejects with `runtime_unavailable` when the engine is not the one the store knows, and
   * with whatever either of them says when it cannot answer.
   */
  async settle(): Promise<EngineMark> {
    const { store, runtime, emit } = this.#options;
    const seen = await runtime.mark();
    const expected = await store.settleEngine(seen);
    this.#mismatch = expected !== seen;
    if (this.#mismatch) {
      this.#settled = null;
      emit({ type: 'engine-mismatch', expected, seen });
      throw new BrokerError(
        'runtime_unavailable',
        `This is another container engine (mark ${seen}) than the one this deployment runs on (mark ${expected}). ` +
          'Point runtime.docker at the right engine, or give this one a deployment of its own.',
      );
    }
    this.#settled = seen;
    return seen;
  }
}
