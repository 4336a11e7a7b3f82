import { expect, test } from 'vitest';
import { HISTORY_KEPT_MS } from '../../src/domain/history.ts';
import { MemoryHistory } from '../../src/leases/memory-history.ts';
import { ID } from '../support/lease-harness.ts';
import { entry, historyContract } from './history-contract.ts';

historyContract('memory', async () => {
  let now = 0;
  const store = new MemoryHistory(() => now);
  const keptMs = async (): Promise<number> => {
    const began = now;
    let [there, gone] = [0, HISTORY_KEPT_MS + 1];
    while (gone - there > 1) {
      const middle = Math.floor((there + gone) / 2);
      now = began + middle;
      if ((await store.read(ID)).some(({ event }) => event === 'started')) there = middle;
      else gone = middle;
    }
    now = began;
    return gone;
  };
  const forget = async (ms: number): Promise<void> => {
    now += ms;
  };
  return { a: store, b: store, keptMs, forget, close: async () => undefined };
});

test('a history that nobody adds to is forgotten after a day, also where nobody reads it', async () => {
  let now = 0;
  const store = new MemoryHistory(() => now);
  await store.append([{ id: ID, entry: entry(0, 'started') }]);
  now = HISTORY_KEPT_MS - 1;
  expect(await store.read(ID)).toHaveLength(1);
  now = HISTORY_KEPT_MS;
  expect(await store.read(ID)).toEqual([]);
});
