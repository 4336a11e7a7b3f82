import type { HistoryEntry } from '../domain/history.ts';
import type { SandboxId } from '../domain/ids.ts';

export interface HistoryLine {
  readonly id: SandboxId;
  readonly entry: HistoryEntry;
}

/**
 * What happened to each sandbox of a deployment, told by every replica: the last `KEPT` entries, for `HISTORY_KEPT_MS`
 * after the last one. It decides nothing. Both methods reject with `store_unavailable`.
 */
export interface HistoryStore {
  /** Adds lines, in their order. Not idempotent: lines whose reply was lost may be there twice. */
  append(lines: readonly HistoryLine[]): Promise<void>;
  /** Oldest first; empty where nothing is known. Changes nothing, also not a lifetime. */
  read(id: SandboxId): Promise<readonly HistoryEntry[]>;
}

/** Of two at the same time the one that was told first comes first. */
export function inOrder(entries: readonly HistoryEntry[]): HistoryEntry[] {
  return entries.toSorted((a, b) => a.at - b.at);
}
