import type { Emit } from '../domain/events.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { FailedStarts } from './failed-starts.ts';
import type { Tracked, TrackedLeases } from './tracked.ts';

export interface RenewalOptions {
  readonly store: Pick<LeaseStore, 'renew' | 'reassert'>;
  readonly tracked: TrackedLeases;
  readonly failedStarts: FailedStarts;
  readonly clock: Clock;
  readonly emit: Emit;
}

const BATCH = 200;

/**
 * One renewal pass: extends this replica's leases, keeps the store's life going even without any, and finishes starts
 * that failed while the store was away. It stops at the
 * first `store_unavailable`, having changed nothing: what was not renewed is renewed by the next pass, or grows too
 * old to be acted on.
 */
export class Renewal {
  readonly #options: RenewalOptions;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** Rejects with `store_unavailable`. */
  async pass(): Promise<void> {
    const { failedStarts } = this.#options;
    try {
      await this.#renewAll();
      await failedStarts.pass();
    } catch (error) {
      failedStarts.interrupted();
      throw error;
    }
  }

  async #renewAll(): Promise<void> {
    const { tracked, clock, emit } = this.#options;
    const began = clock.monotonic();
    const leases = tracked.all(began);
    let renewed = 0;
    for (let first = 0; first === 0 || first < leases.length; first += BATCH) {
      renewed += await this.#batch(leases.slice(first, first + BATCH));
    }
    emit({ type: 'renewal-pass', renewed, durationMs: clock.monotonic() - began });
  }

  async #batch(leases: readonly Tracked[]): Promise<number> {
    const { store, tracked, clock, emit } = this.#options;
    const sentAt = clock.monotonic();
    // What was handed over or taken anew since the pass began is not renewed.
    const mine = leases.filter(({ record: { id, fence } }) => tracked.current(id, sentAt)?.record.fence === fence);
    const replies = await store.renew(
      mine.map(({ record: { id, fence, state } }) => ({ id, fence, ready: state === 'ready' })),
    );
    let renewed = 0;
    for (const lease of mine) {
      const { id, fence } = lease.record;
      switch (replies.get(id)) {
        case 'renewed':
          tracked.renewed(id, fence, sentAt);
          renewed += 1;
          break;
        case 'lapsed':
          await this.#reassert(lease);
          break;
        case 'lost':
          if (tracked.forget(id, fence)) emit({ type: 'lease-lost', sandbox: id, fence });
          break;
        default: // unreadable, or not answered for: nothing is known, nothing is concluded
          break;
      }
    }
    return renewed;
  }

  /**
   * The store has no record, or one older than mine: it lost something. What I remember is written back, unless I took
   * the sandbox anew while the renewal was on its way. A start writes itself again when it goes on.
   */
  async #reassert({ record, handedOut }: Tracked): Promise<void> {
    const { store, tracked, clock, emit } = this.#options;
    const { id, fence, container, engine, url, state, since, profile, userId, threadId, spec, createdAt } = record;
    if (tracked.current(id, clock.monotonic())?.record.fence !== fence) return;
    if (state !== 'ready' || container === null || engine === null) {
      tracked.forget(id, fence);
      return;
    }
    const sentAt = clock.monotonic();
    const found = { container, engine, url, since, profile, userId, threadId, spec, createdAt };
    const written = await store.reassert({ id, fence, ...found });
    if (written === 'refused') {
      if (tracked.forget(id, fence)) emit({ type: 'lease-lost', sandbox: id, fence });
      return;
    }
    tracked.remember(written, sentAt, handedOut);
    emit({ type: 'lease-reasserted', sandbox: id, fence: written.fence });
  }
}
