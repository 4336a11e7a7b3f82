import { HISTORY_KEPT_MS, type HistoryEntry, isUse, KEPT } from '../domain/history.ts';
import type { SandboxId } from '../domain/ids.ts';
import { type HistoryLine, type HistoryStore, inOrder } from './history-store.ts';

interface Kept {
  readonly life: HistoryEntry[];
  readonly use: HistoryEntry[];
  until: number;
}

/** The histories of one deployment whose store lives in this process. The one told of last is last in the map. */
export class MemoryHistory implements HistoryStore {
  readonly #now: () => number;
  readonly #histories = new Map<SandboxId, Kept>();

  constructor(now: () => number) {
    this.#now = now;
  }

  async append(lines: readonly HistoryLine[]): Promise<void> {
    const until = this.#now() + HISTORY_KEPT_MS;
    for (const { id, entry } of lines) {
      const kept = this.#histories.get(id) ?? { life: [], use: [], until };
      const [list, most] = isUse(entry) ? [kept.use, KEPT.use] : [kept.life, KEPT.life];
      list.push(entry);
      if (list.length > most) list.shift();
      kept.until = until;
      this.#histories.delete(id);
      this.#histories.set(id, kept);
    }
    for (const [id, kept] of this.#histories) {
      if (kept.until > this.#now()) break;
      this.#histories.delete(id);
    }
  }

  async read(id: SandboxId): Promise<readonly HistoryEntry[]> {
    const kept = this.#histories.get(id);
    return kept === undefined || kept.until <= this.#now() ? [] : inOrder([...kept.life, ...kept.use]);
  }
}
