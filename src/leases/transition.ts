import type { Previous } from '../domain/errors.ts';
import type { ContainerId, Fence, Life, OwnerId, SandboxId } from '../domain/ids.ts';
import { isExpired, type LeaseRecord, PREVIOUS_KEPT_MS, RECORD_VERSION, type StoredState } from '../domain/sandbox.ts';
import type { Claim, LeasePolicy, StartReply } from './lease-store.ts';

/**
 * The operations of the store as pure functions: a record (null: none is stored) that has been brought into the
 * present life, and the moment in which the step happens, give the record to write and the reply.
 */
export type Transition<Args, Reply> = (stored: LeaseRecord | null, at: Moment, args: Args) => Step<Reply>;

/** `record`: what to write; absent: the record stays as it is. */
export interface Step<Reply> {
  readonly record?: LeaseRecord;
  readonly reply: Reply;
}

/** Who acts on which sandbox, and when. `now` is the store's clock in milliseconds. */
export interface Moment {
  readonly id: SandboxId;
  readonly owner: OwnerId;
  readonly now: number;
  readonly life: Life;
  readonly policy: LeasePolicy;
  /** Larger than every fence the deployment ever gave, than the clock allows to repeat, and than each of `known`. */
  nextFence(...known: readonly (Fence | undefined)[]): Fence;
}

/** A lease taken or extended at this moment ends here. */
export const leaseEnd = (at: Moment): number => at.now + at.policy.leaseMs;

/** When a tombstone is physically gone. */
export function keptUntil(tombstone: LeaseRecord, { leaseMs }: LeasePolicy): number {
  return tombstone.expiresAt - leaseMs + Math.max(leaseMs, PREVIOUS_KEPT_MS);
}

/** What a step may act on: a tombstone that has stood for its lease counts as no record. */
export function present(stored: LeaseRecord | null, at: Moment): LeaseRecord | null {
  return stored?.state === 'gone' && isExpired(stored, at.now) ? null : stored;
}

export function isMine(
  record: LeaseRecord | null,
  at: Moment,
  state: StoredState,
  fence: Fence,
): record is LeaseRecord {
  return record !== null && record.owner === at.owner && record.fence === fence && record.state === state;
}

/** True if a `ready` record hands this container out. */
export function isNamed(record: LeaseRecord | null, container: ContainerId): record is LeaseRecord {
  return record !== null && record.state === 'ready' && record.container === container;
}

/** A record of mine out of nothing. */
export function newRecord(at: Moment, known: Pick<LeaseRecord, 'state' | 'fence'> & Partial<LeaseRecord>): LeaseRecord {
  return {
    v: RECORD_VERSION,
    id: at.id,
    owner: at.owner,
    since: known.fence,
    container: null,
    engine: null,
    url: null,
    expiresAt: leaseEnd(at),
    holds: new Map(),
    idleSince: at.now,
    lastActiveAt: at.now,
    life: at.life,
    verified: false,
    profile: null,
    userId: null,
    threadId: null,
    spec: null,
    createdAt: at.now,
    previous: null,
    ...known,
  };
}

/** A start of mine, from the beginning. The container that the record names becomes its residue. */
export function asStarting(record: LeaseRecord, at: Moment, fence: Fence): LeaseRecord {
  return {
    ...record,
    state: 'starting',
    owner: at.owner,
    fence,
    since: fence,
    url: null,
    expiresAt: leaseEnd(at),
    holds: new Map(),
    idleSince: at.now,
    lastActiveAt: at.now,
    verified: false,
    createdAt: at.now,
  };
}

/** A removal of mine. */
export function asDestroying(
  record: LeaseRecord,
  at: Moment,
  fence: Fence,
  container: ContainerId | null,
): LeaseRecord {
  return {
    ...record,
    state: 'destroying',
    owner: at.owner,
    fence,
    container,
    url: null,
    expiresAt: leaseEnd(at),
    holds: new Map(),
    verified: false,
  };
}

export function asTombstone(record: LeaseRecord, at: Moment, previous: Previous | null): LeaseRecord {
  return {
    ...record,
    state: 'gone',
    container: null,
    engine: null,
    url: null,
    expiresAt: leaseEnd(at),
    holds: new Map(),
    verified: false,
    previous,
  };
}

export function startReply(record: LeaseRecord): StartReply {
  return { record, fence: record.fence, residue: record.container, life: record.life };
}

export function claimOf({ id, fence, container, engine, life, previous }: LeaseRecord): Claim {
  return { id, fence, container, engine, life, previous };
}
