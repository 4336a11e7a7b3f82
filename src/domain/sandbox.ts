import type { Previous } from './errors.ts';
import {
  type ContainerId,
  type EngineMark,
  type Fence,
  type HoldId,
  type Life,
  type OwnerId,
  type SandboxId,
  UNKNOWN_HOLD,
} from './ids.ts';

/** The format that this code writes. A record of a newer one is left alone. */
export const RECORD_VERSION = 1;
/** Beyond this many, the hold that would run out first is forgotten; its keepalive revives it. */
export const MAX_HOLDS = 64;
/** How long a tombstone tells why its sandbox ended, in milliseconds. */
export const PREVIOUS_KEPT_MS = 3_600_000;

export type StoredState = 'starting' | 'ready' | 'destroying' | 'gone';
export type ShownState = 'starting' | 'active' | 'warm' | 'destroying';

/**
 * What the lease store keeps of one sandbox. Times are milliseconds of the store's clock.
 *
 * `container` is what a `ready` record hands out, what a `destroying` one removes, and what a `starting` one has
 * still to remove (its residue). `since` is the fence under which the container was created; a hold older than it
 * was for an earlier container.
 */
export interface LeaseRecord {
  readonly v: number;
  readonly id: SandboxId;
  readonly state: StoredState;
  readonly owner: OwnerId;
  readonly fence: Fence;
  readonly since: Fence;
  readonly container: ContainerId | null;
  readonly engine: EngineMark | null;
  readonly url: string | null;
  readonly expiresAt: number;
  readonly holds: ReadonlyMap<HoldId, number>;
  /** From when on nobody held it, as far as no hold that counts says otherwise. */
  readonly idleSince: number;
  readonly lastActiveAt: number;
  readonly life: Life;
  readonly verified: boolean;
  readonly profile: string | null;
  readonly userId: string | null;
  readonly threadId: string | null;
  readonly spec: string | null;
  readonly createdAt: number;
  readonly previous: Previous | null;
}

/** How many holds count at `now`. */
export function countHolds(record: LeaseRecord, now: number): number {
  let count = 0;
  for (const until of record.holds.values()) if (until > now) count += 1;
  return count;
}

/** True once the owner is presumed dead. */
export function isExpired(record: LeaseRecord, now: number): boolean {
  return record.expiresAt <= now;
}

/** A tombstone that has stood for its lease counts as no record, except for reads. */
export function isAbsent(record: LeaseRecord | null, now: number): record is null {
  return record === null || (record.state === 'gone' && isExpired(record, now));
}

/** Since when nobody holds it (store clock); null while a hold counts. */
export function unheldSince(record: LeaseRecord, now: number): number | null {
  let since = record.idleSince;
  for (const until of record.holds.values()) {
    if (until > now) return null;
    since = Math.max(since, until);
  }
  return since;
}

/** What the API calls its state; null for a tombstone. */
export function shownState(record: LeaseRecord, now: number): ShownState | null {
  switch (record.state) {
    case 'ready':
      return countHolds(record, now) > 0 ? 'active' : 'warm';
    case 'gone':
      return null;
    default:
      return record.state;
  }
}

/** Drops the holds that ran out, keeping the end of the last one as the beginning of the idle time. */
export function withoutExpiredHolds(record: LeaseRecord, now: number): LeaseRecord {
  const holds = new Map<HoldId, number>();
  let idleSince = record.idleSince;
  for (const [hold, until] of record.holds) {
    if (until > now) holds.set(hold, until);
    else idleSince = Math.max(idleSince, until);
  }
  return holds.size === record.holds.size ? record : { ...record, holds, idleSince };
}

/** Adds or renews a hold; beyond `MAX_HOLDS` the one that would run out first goes. */
export function withHold(record: LeaseRecord, hold: HoldId, until: number, now: number): LeaseRecord {
  const current = withoutExpiredHolds(record, now);
  const holds = new Map(current.holds).set(hold, until);
  if (holds.size > MAX_HOLDS) {
    const others = [...holds].filter(([other]) => other !== hold);
    const [first] = others.reduce((a, b) => (b[1] < a[1] || (b[1] === a[1] && b[0] < a[0]) ? b : a));
    holds.delete(first);
  }
  return { ...current, holds };
}

/**
 * The record as this life of the store sees it. One that an earlier life wrote is not trusted: its container has to
 * be looked at again, and whoever held it then gets `holdMs` to come back.
 */
export function intoLife(record: LeaseRecord, life: Life, now: number, holdMs: number): LeaseRecord {
  if (record.life === life) return record;
  const stamped = { ...record, life, verified: false };
  return stamped.state === 'ready' ? withHold(stamped, UNKNOWN_HOLD, now + holdMs, now) : stamped;
}
