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

/**
 * Removes this replica's sandboxes that nobody has held for long enough. What it reads decides only which to try: the
 * claim is judged by the store. The removals go on after the pass.
 */
export class IdleReaper {
  readonly #options: IdleReaperOptions;

  constructor(options: IdleReaperOptions) {
    this.#options = options;
  }

  /** One pass. Rejects with `store_unavailable`, having claimed nothing more. */
  async pass(stopping?: AbortSignal): Promise<void> {
    const { store, tracked, teardown, clock, idleMs } = this.#options;
    const ready = tracked.all(clock.monotonic()).filter(({ record }) => record.state === 'ready');
    for (const seen of await store.readMany(ready.map(({ record }) => record.id))) {
      if (stopping?.aborted) return;
      if (seen.kind !== 'record' || seen.record.state !== 'ready') continue;
      const since = unheldSince(seen.record, seen.now);
      if (since === null || seen.now - since < idleMs) continue;
      const mine = tracked.current(seen.id, clock.monotonic());
      if (mine === null) continue;
      const claim = await store.claim(seen.id, mine.record.fence, { kind: 'idle', unheldMs: idleMs });
      if (claim !== 'refused') teardown.begin(claim, 'idle');
    }
  }
}
