import { HISTORY_KEPT_MS, type HistoryEntry, isUse, KEPT } from '../domain/history.ts';
import type { SandboxId } from '../domain/ids.ts';
import { type HistoryLine, type HistoryStore, inOrder } from './history-store.ts';
import type { RedisKeys } from './redis-keys.ts';
import { digits } from './redis-replies.ts';
import type { ScriptName } from './redis-scripts.ts';

export type RunScript = (script: ScriptName, keys: readonly string[], args: readonly string[]) => Promise<unknown>;

/** Most lines that one script adds, so that none holds the server up. */
const BATCH = 200;

/** The histories of one deployment in Redis: two lists a sandbox, one of its life and one of its use. */
export class RedisHistory implements HistoryStore {
  readonly #run: RunScript;
  readonly #keys: RedisKeys;

  constructor(run: RunScript, keys: RedisKeys) {
    this.#run = run;
    this.#keys = keys;
  }

  async append(lines: readonly HistoryLine[]): Promise<void> {
    for (let first = 0; first < lines.length; first += BATCH) {
      const batch = lines.slice(first, first + BATCH);
      const keys = batch.flatMap(({ id, entry }) => {
        const { life, use } = this.#keys.history(id);
        return isUse(entry) ? [use, life] : [life, use];
      });
      const args = batch.flatMap(({ entry }) => [digits(KEPT[isUse(entry) ? 'use' : 'life']), JSON.stringify(entry)]);
      await this.#run('append-history', keys, [digits(HISTORY_KEPT_MS), ...args]);
    }
  }

  async read(id: SandboxId): Promise<readonly HistoryEntry[]> {
    const { life, use } = this.#keys.history(id);
    const lines = (await this.#run('read-history', [life, use], [])) as string[];
    return inOrder(lines.map((line) => JSON.parse(line) as HistoryEntry));
  }
}
