import { describe, expect, test } from 'vitest';
import { HISTORY_KEPT_MS, type HistoryEntry, KEPT } from '../../src/domain/history.ts';
import { asOwnerId } from '../../src/domain/ids.ts';
import type { HistoryStore } from '../../src/leases/history-store.ts';
import { ID, otherIdentity } from '../support/lease-harness.ts';

export interface HistoryHarness {
  /** Two replicas' handles on one store. */
  readonly a: HistoryStore;
  readonly b: HistoryStore;
  /** How long what is known of the sandbox is kept from now on, in milliseconds. */
  keptMs(): Promise<number>;
  /** As if so many milliseconds had gone by for what is known of the sandbox. */
  forget(ms: number): Promise<void>;
  close(): Promise<void>;
}

const OTHER = otherIdentity('another thread').id;

export function entry(at: number, event: HistoryEntry['event'], reason: string | null = null): HistoryEntry {
  return { at, event, owner: asOwnerId('host:a'), reason, key: null, container: null };
}

/** What every store of histories does. */
export function historyContract(name: string, open: () => Promise<HistoryHarness>): void {
  const rule = (title: string, body: (harness: HistoryHarness) => Promise<void>): void =>
    test(title, async () => {
      const harness = await open();
      try {
        await body(harness);
      } finally {
        await harness.close();
      }
    });

  describe(`histories: ${name}`, () => {
    rule('what one replica tells any replica reads, oldest first, of that sandbox alone', async ({ a, b }) => {
      await a.append([
        { id: ID, entry: entry(2, 'held', 'created') },
        { id: OTHER, entry: entry(3, 'started') },
      ]);
      await b.append([{ id: ID, entry: { ...entry(1, 'started'), key: 'a "key"', container: null } }]);
      const told = [{ ...entry(1, 'started'), key: 'a "key"' }, entry(2, 'held', 'created')];
      expect(await a.read(ID)).toEqual(told);
      expect(await b.read(ID)).toEqual(told);
      expect(await b.read(OTHER)).toEqual([entry(3, 'started')]);
    });

    rule('nothing told, nothing known', async ({ a }) => {
      await a.append([]);
      expect(await a.read(ID)).toEqual([]);
    });

    rule('the last entries are kept, and use never pushes out life', async ({ a }) => {
      const many = (count: number, event: HistoryEntry['event'], from: number) =>
        Array.from({ length: count }, (_, n) => ({ id: ID, entry: entry(from + n, event) }));
      await a.append(many(3, 'started', 0));
      await a.append(many(500, 'held', 1_000));
      const seen = await a.read(ID);
      expect(seen.slice(0, 3).map(({ event }) => event)).toEqual(['started', 'started', 'started']);
      expect(seen).toHaveLength(3 + KEPT.use);
      expect(seen.at(-1)?.at).toBe(1_499);
      await a.append(many(KEPT.life + 1, 'adopted', 2_000));
      await a.append(many(100, 'refused', 3_000));
      const life = (await a.read(ID)).filter(({ event }) => event !== 'refused');
      expect(life).toHaveLength(KEPT.life);
      expect(life[0]?.at).toBe(2_001);
    });

    rule('what keeps the use of a sandbox keeps its life as long', async ({ a, forget, keptMs }) => {
      await a.append([{ id: ID, entry: entry(1, 'started') }]);
      await forget(HISTORY_KEPT_MS - 1_000);
      await a.append([{ id: ID, entry: entry(2, 'held') }]);
      expect(await keptMs()).toBeGreaterThan(HISTORY_KEPT_MS - 60_000);
    });

    rule('a history is kept for a day after its last entry, and reading it changes nothing', async ({ a, keptMs }) => {
      await a.append([{ id: ID, entry: entry(1, 'started') }]);
      const before = await keptMs();
      expect(before).toBeGreaterThan(HISTORY_KEPT_MS - 60_000);
      await a.read(ID);
      expect(await keptMs()).toBeLessThanOrEqual(before);
    });
  });
}
