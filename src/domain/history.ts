import type { ContainerId, OwnerId } from './ids.ts';

/** What can have happened to a sandbox. `held`, `released` and `refused` come again and again; the others are its life. */
export const HISTORY_EVENTS = [
  'held',
  'released',
  'refused',
  'started',
  'start-failed',
  'adopted',
  'reasserted',
  'lost',
  'ended',
  'destroy-asked',
  'claimed',
  'removed',
  'kept',
  'removal-failed',
] as const;
export type HistoryEvent = (typeof HISTORY_EVENTS)[number];

/** One thing that happened to a sandbox. Of no user's text. */
export interface HistoryEntry {
  /** Epoch milliseconds, by the clock of the replica that did it. */
  readonly at: number;
  readonly event: HistoryEvent;
  /** The replica that did it, or saw it. */
  readonly owner: OwnerId;
  /** Why, or how: an origin, a reason, a code. */
  readonly reason: string | null;
  /** The name of the API key that asked for it. */
  readonly key: string | null;
  readonly container: ContainerId | null;
}

/** So many of the life of a sandbox are kept, and so many of its use: a busy one does not push out how it came about. */
export const KEPT = { life: 100, use: 20 } as const;
/** For so long after its last entry a history is kept. */
export const HISTORY_KEPT_MS = 24 * 3_600_000;

const USE: readonly HistoryEvent[] = ['held', 'released', 'refused'];
export const isUse = ({ event }: HistoryEntry): boolean => USE.includes(event);
