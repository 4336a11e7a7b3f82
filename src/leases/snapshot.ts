import { asLife, type Life, type SandboxId } from '../domain/ids.ts';
import { intoLife, type LeaseRecord } from '../domain/sandbox.ts';
import type { Snapshot } from './lease-store.ts';
import type { Unreadable } from './record-fields.ts';

/** What a life is called while none is going on, in what a read shows. No stored record is of this life. */
export const NO_LIFE = asLife('');

/** What a read found, as the present life sees it. */
export function snapshotOf(
  id: SandboxId,
  entry: LeaseRecord | Unreadable | null,
  moment: { readonly now: number; readonly life: Life; readonly holdTtlMs: number },
): Snapshot {
  const { now, life, holdTtlMs } = moment;
  if (entry === null) return { kind: 'absent', id, now };
  if (isUnreadable(entry)) return { kind: 'unreadable', id, reason: entry.reason, now };
  return { kind: 'record', id, record: intoLife(entry, life, now, holdTtlMs), now };
}

export function isUnreadable(entry: LeaseRecord | Unreadable | null): entry is Unreadable {
  return entry !== null && 'kind' in entry;
}
