import { countHolds, type LeaseRecord, shownState, unheldSince } from '../domain/sandbox.ts';
import type { SandboxView } from './api.ts';

/** What a caller sees of a record at `now` (store clock, epoch milliseconds); null for a tombstone. */
export function sandboxView(record: LeaseRecord, now: number, idleMs: number): SandboxView | null {
  const state = shownState(record, now);
  if (state === null) return null;
  const unheld = state === 'warm' ? unheldSince(record, now) : null;
  const usable = state === 'active' || state === 'warm';
  return {
    id: record.id,
    profile: record.profile,
    userId: record.userId,
    threadId: record.threadId,
    url: usable ? record.url : null,
    state,
    holds: countHolds(record, now),
    owner: record.owner,
    createdAt: record.createdAt,
    lastActiveAt: record.lastActiveAt,
    warmUntil: unheld === null || idleMs === 0 ? null : unheld + idleMs,
  };
}
