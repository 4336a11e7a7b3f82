import { BrokerError } from '../domain/errors.ts';
import type { Origin } from '../domain/events.ts';
import type { HoldId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';

/** One sandbox in the hands of one caller. */
export interface Handout {
  readonly record: LeaseRecord;
  readonly url: string;
  readonly hold: HoldId;
  readonly origin: Origin;
  /** True for a start that nobody waited for any more: its hold runs out by itself soon. */
  readonly brief: boolean;
}

/** Why an acquire takes longer than a look. */
export type Slow = { readonly kind: 'starting'; readonly record: LeaseRecord } | { readonly kind: 'unsettled' };

/** Whoever waits for a handout, as the acquire sees them. */
export interface Waiting {
  /** Aborts when nobody waits any more. A start goes on all the same. */
  readonly gaveUp: AbortSignal;
  /** The acquire has met something slow. May be called several times; the latest counts. */
  readonly slow: (why: Slow) => void;
}

export const capacityExhausted = (scope: 'fleet' | 'user', limit: number, retryAfterMs: number): BrokerError =>
  scope === 'fleet'
    ? new BrokerError(
        'capacity_exhausted',
        `All ${limit} sandboxes (capacity.max) are in use. Release or destroy one, or ask again later.`,
        { retryAfterMs },
      )
    : new BrokerError(
        'user_capacity_exhausted',
        `This user has ${limit} sandboxes (capacity.perUser), as many as allowed. Destroy one, or ask again later.`,
        { retryAfterMs },
      );

export const unsettled = (id: string, why: string): BrokerError =>
  new BrokerError('sandbox_unsettled', `Sandbox ${id} cannot be handed out yet: ${why}. Ask again.`, {
    retryAfterMs: 1_000,
  });
