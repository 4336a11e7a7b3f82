import { BrokerError } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { EngineMark } from '../domain/ids.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';

export interface EngineOptions {
  readonly store: Pick<LeaseStore, 'settleEngine' | 'seesPeers'>;
  readonly runtime: Pick<ContainerRuntime, 'mark' | 'sharedNote'>;
  readonly emit: Emit;
}

/**
 * Which engine this is. Only the engine that a record names can say that its container is gone, and a deployment has
 * one engine: whoever sees another one concludes nothing from what it shows. Neither does a broker that keeps its leases to
 * itself where others share theirs: it would take what they hand out for containers that nobody owns.
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
   * Asks engine and store anew. Rejects with `runtime_unavailable` when the engine is not the one the store knows or its
   * sandboxes belong to brokers that this one does not see, and with whatever either of them says when it cannot answer.
   */
  async settle(): Promise<EngineMark> {
    const { store, runtime, emit } = this.#options;
    const seen = await runtime.mark();
    const note = await runtime.sharedNote(store.seesPeers);
    if (note !== null && !store.seesPeers) {
      this.#mismatch = true;
      this.#settled = null;
      emit({ type: 'leases-not-shared', note });
      throw new BrokerError(
        'runtime_unavailable',
        'The sandboxes of this deployment on this container engine belong to brokers that share a lease store, and this ' +
          'one keeps its leases in memory. Set store.url to that store, or give this broker a deployment of its own. ' +
          `If those brokers are gone for good, remove the volume ${note} from the engine.`,
      );
    }
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
