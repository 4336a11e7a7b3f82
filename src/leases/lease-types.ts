import type { Previous } from '../domain/errors.ts';
import type { Identity } from '../domain/identity.ts';
import type { ContainerId, EngineMark, Fence, HoldId, Life, SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';

/** What every handle of one deployment agrees on. Durations in milliseconds; 0 for a limit means none. */
export interface LeasePolicy {
  readonly leaseMs: number;
  readonly holdTtlMs: number;
  readonly maxSandboxes: number;
  readonly maxPerUser: number;
}

export interface TakeRequest {
  readonly id: SandboxId;
  readonly identity: Identity;
  readonly spec: string;
  /** The largest fence that the caller has seen for this id (its container's label, say). */
  readonly known?: Fence;
  /** Others wait at this limit and were here first: a new sandbox is refused as if the limit were reached. */
  readonly behind?: 'fleet' | 'user';
}

export type TakeReply =
  | { readonly kind: 'ready'; readonly record: LeaseRecord; readonly hold: HoldId; readonly heldBefore: boolean }
  | ({ readonly kind: 'starting' } & StartReply)
  | { readonly kind: 'wait'; readonly record: LeaseRecord }
  | { readonly kind: 'full'; readonly scope: 'fleet' | 'user' }
  | { readonly kind: 'uncounted' };

/** A start that is mine. `residue`: the container to condemn, confirm and remove first. */
export interface StartReply {
  readonly record: LeaseRecord;
  readonly fence: Fence;
  readonly residue: ContainerId | null;
  readonly life: Life;
}

export interface ActivateRequest {
  readonly id: SandboxId;
  readonly fence: Fence;
  readonly container: ContainerId;
  readonly engine: EngineMark;
  readonly url: string;
  readonly found: boolean;
  /** The container's `.fence` label. */
  readonly since: Fence;
  readonly spec: string | null;
  /** Epoch milliseconds of the container's creation; null: keep what `take` wrote. */
  readonly createdAt: number | null;
  readonly holdMs: number;
}

export interface AdoptRequest {
  readonly id: SandboxId;
  /** Of the container that was found running under the name; null adopts an expired `ready` record only. */
  readonly container: FoundContainer | null;
}

export interface FoundContainer {
  readonly container: ContainerId;
  readonly engine: EngineMark;
  readonly url: string | null;
  readonly since: Fence;
  readonly profile: string | null;
  readonly userId: string | null;
  readonly threadId: string | null;
  readonly spec: string | null;
  readonly createdAt: number | null;
}

export type ClaimCondition =
  /** Mine, `ready`, and unheld for at least so long. Keeps its fence. */
  | { readonly kind: 'idle'; readonly unheldMs: number }
  /** Mine and `ready`, whatever its holds: this replica ends, and its sandboxes with it. Keeps its fence. */
  | { readonly kind: 'shutdown' }
  /** Mine and `ready`, and no hold counts but the one that its fence is: its acquirer wants a newer container. */
  | { readonly kind: 'replace' }
  /** Anybody's, `ready`, and unheld. */
  | { readonly kind: 'capacity' }
  /** My own `starting`, naming the container it made or that holds its name. Keeps its fence. */
  | { readonly kind: 'failed-start'; readonly container: ContainerId | null }
  /** An expired `starting` (naming `container`, else its residue) or an expired `destroying`, of anybody. */
  | { readonly kind: 'expired'; readonly container: ContainerId | null }
  /** `ready`, unverified, naming this container, which has been condemned for a lease; whatever its holds. */
  | { readonly kind: 'unsettled'; readonly container: ContainerId };

/** A removal that is mine to carry out. `life`: of the store, in which it was claimed. */
export interface Claim {
  readonly id: SandboxId;
  readonly fence: Fence;
  readonly container: ContainerId | null;
  readonly engine: EngineMark | null;
  readonly life: Life;
  readonly previous: Previous | null;
}

export type ConfirmRequest =
  /** A teardown: `mine` if the record is my `destroying` of this fence, or is gone (then it is written again). */
  | {
      readonly kind: 'teardown';
      readonly id: SandboxId;
      readonly fence: Fence;
      readonly container: ContainerId;
      readonly engine: EngineMark | null;
    }
  /** An acquire's residue: `mine` if the record is my `starting` of this fence. */
  | { readonly kind: 'residue'; readonly id: SandboxId; readonly fence: Fence; readonly container: ContainerId }
  /** A container that no acquire hands out: `mine` if a verified `ready` names another, or no record does. */
  | { readonly kind: 'stray'; readonly id: SandboxId; readonly container: ContainerId };

export interface ConfirmReply {
  readonly answer: 'mine' | 'named' | 'starting' | 'taken';
  readonly life: Life;
}

export interface LeaseClaim {
  readonly id: SandboxId;
  readonly fence: Fence;
  /** True if I remember it `ready`; without it, `starting` is as good. */
  readonly ready?: boolean;
}

export type RenewReply = 'renewed' | 'lapsed' | 'lost' | 'unreadable';

export interface ReassertRequest extends FoundContainer {
  readonly id: SandboxId;
  /** The fence I remember; a `ready` record with this one, and any with a larger one, is left alone. */
  readonly fence: Fence;
}

export interface Spare {
  readonly container: ContainerId;
  /** The name that it was made under, and that it loses when it is dedicated or condemned. */
  readonly name: string;
  readonly engine: EngineMark;
  readonly url: string;
  readonly profile: string;
  readonly spec: string;
  readonly createdAt: number;
}

export interface SparePool {
  readonly spares: readonly Spare[];
  /** How many sandboxes count against the fleet's limit. */
  readonly sandboxes: number;
}

/** A container that runs, or is about to. `userId`: as far as the container tells. */
export interface RunningContainer {
  readonly id: SandboxId;
  readonly userId: string | null;
}

export interface Unheld {
  /** Longest first; of equally long ones the first by id. */
  readonly records: readonly LeaseRecord[];
  /** When the next one will be, unless a hold is renewed or ends early: store clock. Null: none is held. */
  readonly nextAt: number | null;
  readonly now: number;
}

/**
 * `slot-freed`: a sandbox counts against the limits no more. `unheld`: the last hold of one was released while a limit
 * was reached, so it can make room. `spare-taken`: the pool has one less.
 */
export type News = 'slot-freed' | 'unheld' | 'spare-taken';
/** `user`: the hash of whose sandbox it is about; null: not known, or nobody's. */
export type NewsListener = (news: News, user: string | null) => void;

/** One record as it was at `now` of the store's clock. */
export type Snapshot =
  | { readonly kind: 'record'; readonly id: SandboxId; readonly record: LeaseRecord; readonly now: number }
  | { readonly kind: 'absent'; readonly id: SandboxId; readonly now: number }
  | { readonly kind: 'unreadable'; readonly id: SandboxId; readonly reason: string; readonly now: number };
