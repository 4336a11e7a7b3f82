import { codeOf, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Spares } from './spares.ts';
import type { Teardown } from './teardown.ts';
import type { Tracked, TrackedLeases } from './tracked.ts';

export interface ShutdownOptions {
  readonly store: Pick<LeaseStore, 'handover' | 'claim'>;
  readonly runtime: Pick<ContainerRuntime, 'look'>;
  readonly teardown: Teardown;
  readonly tracked: TrackedLeases;
  readonly spares: Pick<Spares, 'leave' | 'removeOwn'>;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** What becomes of this replica's sandboxes when it ends. A peer's are never touched. */
export class Shutdown {
  readonly #options: ShutdownOptions;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  /** Every sandbox goes on running; a peer may adopt it at once. Rejects with `store_unavailable`. */
  async keep(): Promise<void> {
    const { store, tracked, spares, clock } = this.#options;
    const leases = tracked.all(clock.monotonic()).map(({ record }) => record);
    // Renewal goes on until the store is closed: what it no longer remembers it does not take back.
    for (const { id, fence } of leases) tracked.forget(id, fence);
    await store.handover(leases.map(({ id }) => id));
    await spares.leave();
  }

  /**
   * Those that this replica started or handed out, and still owns, are removed, and its spares; the others are handed
   * over.
   */
  async destroy(): Promise<void> {
    const { tracked, spares, clock, emit } = this.#options;
    const mine = tracked.all(clock.monotonic()).filter(({ handedOut }) => handedOut);
    const removed = spares.removeOwn().catch((error: unknown) => {
      emit({ type: 'loop-failed', loop: 'spares', code: codeOf(error), message: messageOf(error), again: false });
    });
    await Promise.all([removed, ...mine.map((lease) => this.#destroyOne(lease))]);
    await this.keep();
  }

  async #destroyOne({ record: { id, fence, state } }: Tracked): Promise<void> {
    const { store, runtime, teardown, emit } = this.#options;
    try {
      let condition: Parameters<LeaseStore['claim']>[2] = { kind: 'shutdown' };
      if (state === 'starting') {
        const seen = await runtime.look({ sandbox: id });
        const container = seen.kind === 'running' || seen.kind === 'stopped' ? seen.container.id : null;
        condition = { kind: 'failed-start', container };
      }
      let claim = await store.claim(id, fence, condition);
      // It became ready meanwhile.
      if (claim === 'refused' && state === 'starting') claim = await store.claim(id, fence, { kind: 'shutdown' });
      if (claim !== 'refused') await teardown.run(claim, 'shutdown');
    } catch (error) {
      emit({ type: 'removal-failed', reason: 'shutdown', message: messageOf(error), sandbox: id, fence });
    }
  }
}
