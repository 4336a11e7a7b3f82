import { unheldSince } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface IdleReaperOptions {
  readonly store: Pick<LeaseStore, 'readMany' | 'claim'>;
  readonly tracked: TrackedLeases;
  readonly teardown: Teardown;
  readonly clock: Clock;
  /** How long a sandbox must have been without a hold; more than 0. */
  readonly idleMs: number;
}

/** So many removals at once: with more, the engine has nothing left for whoever wants a sandbox now. */
const AT_ONCE = 4;
/** How long a pass waits for removals before it leaves the rest to the next one. */
const PATIENCE_MS = 30_000;

/**
 * Removes this replica's sandboxes that nobody has held for long enough. What it reads decides only which to try: the
 * claim is judged by the store. One that has to wait for its removal is not claimed yet, and still there for whoever
 * comes. The last removals go on after the pass.
 */
export class IdleReaper {
  readonly #options: IdleReaperOptions;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: IdleReaperOptions) {
    this.#options = options;
  }

  /** One pass. Rejects with `store_unavailable`, having claimed nothing more. */
  async pass(stopping?: AbortSignal): Promise<void> {
    const { store, tracked, teardown, clock, idleMs } = this.#options;
    const ready = tracked.all(clock.monotonic()).filter(({ record }) => record.state === 'ready');
    const until = clock.monotonic() + PATIENCE_MS;
    for (const seen of await store.readMany(ready.map(({ record }) => record.id))) {
      if (seen.kind !== 'record' || seen.record.state !== 'ready') continue;
      const since = unheldSince(seen.record, seen.now);
      if (since === null || seen.now - since < idleMs) continue;
      if (!(await this.#turn(until, stopping))) return;
      const mine = tracked.current(seen.id, clock.monotonic());
      if (mine === null) continue;
      const claim = await store.claim(seen.id, mine.record.fence, { kind: 'idle', unheldMs: idleMs });
      if (claim === 'refused') continue;
      const removal: Promise<unknown> = teardown.begin(claim, 'idle').then(() => this.#underWay.delete(removal));
      this.#underWay.add(removal);
    }
  }

  /** True once another removal may begin; false when the time is over, or none is to begin any more. */
  async #turn(until: number, stopping?: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    while (this.#underWay.size >= AT_ONCE && !stopping?.aborted) {
      const leftMs = until - clock.monotonic();
      if (leftMs <= 0) return false;
      const waited = new AbortController();
      const signal = stopping === undefined ? waited.signal : AbortSignal.any([stopping, waited.signal]);
      await Promise.race([...this.#underWay, clock.pause(leftMs, signal)]);
      waited.abort();
    }
    return !stopping?.aborted;
  }
}
