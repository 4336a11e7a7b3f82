import { BrokerError } from '../domain/errors.ts';
import type { Origin } from '../domain/events.ts';
import type { Identity } from '../domain/identity.ts';
import type { HoldId, SandboxId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { StartReply } from '../leases/lease-store.ts';
import type { RemoveHow } from '../runtime/container-runtime.ts';

/** One sandbox in the hands of one caller. */
export interface Handout {
  readonly record: LeaseRecord;
  readonly url: string;
  readonly hold: HoldId;
  readonly origin: Origin;
  /** True for a start that nobody waited for any more: its hold runs out by itself soon. */
  readonly brief: boolean;
}

export interface Wanted {
  readonly id: SandboxId;
  readonly identity: Identity;
  readonly profile: Profile;
  readonly spec: string;
}

/** A ready sandbox with a hold of this caller's, whose container has yet to be looked at. */
export type Unchecked = Omit<Handout, 'url'>;

/** A start that is this replica's: what the store said, and how its residue is to be removed. */
export interface Start {
  readonly reply: StartReply;
  readonly residueHow: RemoveHow;
}

/**
 * What one look or one start came to. `moved`: the record is not what it was, and no start of this replica's is left that
 * somebody would have to carry on; begin again.
 */
export type Step = Handout | Unchecked | Start | 'moved';

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
