import { BrokerError, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { Images } from '../lifecycle/images.ts';
import type { DependencyView, ReadinessView } from './api.ts';

export interface ReadinessOptions {
  readonly store: { ping(): Promise<void> };
  readonly engine: { settle(): Promise<unknown> };
  readonly images: Images;
  readonly emit: Emit;
}

/**
 * Whether this replica should get traffic. It becomes ready once: when store and engine answered, the first reconcile
 * is done and an image is there. From then on it stays so until shutdown: a dependency that fails for all replicas
 * must not empty the load balancer.
 */
export class Readiness {
  readonly #options: ReadinessOptions;
  #reconciled = false;
  #ready = false;
  #draining = false;
  #lastFailure: string | null = null;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Takes note of how a pass of reconciler or images ends, and passes its error on. */
  async noting(what: 'reconcile' | 'images', pass: Promise<void>): Promise<void> {
    try {
      await pass;
      if (what === 'reconcile') this.#reconciled = true;
      this.#latch();
    } catch (error) {
      if (what === 'reconcile') this.#lastFailure = messageOf(error);
      throw error;
    }
  }

  /** No traffic any more. */
  drain(): void {
    this.#draining = true;
    this.#options.emit({ type: 'readiness', ready: false, because: 'it is shutting down' });
  }

  /** Cheap: looks at nothing. */
  get because(): string | null {
    if (this.#draining) return 'it is shutting down';
    if (this.#ready) return null;
    if (!this.#reconciled)
      return `the first reconcile is not done${this.#lastFailure === null ? '' : `: ${this.#lastFailure}`}`;
    return `no profile's image is there${this.#options.images.problem === null ? '' : `: ${this.#options.images.problem}`}`;
  }

  /** With each dependency as it is now. Never rejects. */
  async view(): Promise<ReadinessView> {
    const { store, engine, images } = this.#options;
    const [storeNow, engineNow] = await Promise.all([asView(() => store.ping()), asView(() => answers(engine))]);
    const imagesNow = { ok: images.problem === null, message: images.problem };
    return {
      ready: this.because === null,
      because: this.because,
      dependencies: { store: storeNow, engine: engineNow, images: imagesNow },
    };
  }

  #latch(): void {
    if (this.#ready || this.#draining || !this.#reconciled || !this.#options.images.anyPresent) return;
    this.#ready = true;
    this.#options.emit({ type: 'readiness', ready: true, because: null });
  }
}

/** That the store cannot say whether it is the right engine is no fault of the engine's. */
async function answers(engine: ReadinessOptions['engine']): Promise<void> {
  try {
    await engine.settle();
  } catch (error) {
    if (!hasCode(error, 'store_unavailable')) throw error;
  }
}

async function asView(ask: () => Promise<unknown>): Promise<DependencyView> {
  try {
    await ask();
    return { ok: true, message: null };
  } catch (error) {
    const message = error instanceof BrokerError ? error.message : `unexpected: ${messageOf(error)}`;
    return { ok: false, message };
  }
}
