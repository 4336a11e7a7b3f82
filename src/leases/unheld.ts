import { type LeaseRecord, unheldSince } from '../domain/sandbox.ts';
import type { Snapshot } from './lease-store.ts';

/** Of these, what nobody holds: longest first, of equally long ones the first by id, at most so many. */
export function longestUnheld(seen: readonly Snapshot[], limit: number): readonly LeaseRecord[] {
  const found: { record: LeaseRecord; since: number }[] = [];
  for (const snapshot of seen) {
    if (snapshot.kind !== 'record' || snapshot.record.state !== 'ready') continue;
    const since = unheldSince(snapshot.record, snapshot.now);
    if (since !== null) found.push({ record: snapshot.record, since });
  }
  found.sort((a, b) => a.since - b.since || (a.record.id < b.record.id ? -1 : 1));
  return found.slice(0, limit).map(({ record }) => record);
}

/** From when on nobody holds it, unless a hold is renewed or ends early. */
export function unheldFrom({ holds, idleSince }: LeaseRecord): number {
  return Math.max(idleSince, ...holds.values());
}
