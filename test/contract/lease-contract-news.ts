import { expect } from 'vitest';
import { userHash } from '../../src/domain/identity.ts';
import { C1, ID, IDENTITY, otherIdentity, type Scene } from '../support/lease-harness.ts';
import { until } from '../support/redis.ts';
import type { Rule } from './lease-contract.ts';
import { counted } from './lease-contract-capacity.ts';

const MINE = userHash(IDENTITY.userId);

/** What B hears from now on, in order. */
async function hearing(s: Scene): Promise<{ readonly heard: string[]; readonly stop: () => void }> {
  const heard: string[] = [];
  let listens = false;
  const stop = s.b.listen((news, user) => {
    if (user === userHash('prober')) listens = true;
    else heard.push(`${news} ${user === MINE ? 'mine' : user}`);
  });
  const probe = otherIdentity('probe', 'prober');
  await until(async () => {
    await s.a.census(await s.a.beginCensus(), [{ id: probe.id, userId: 'prober' }]);
    await s.a.census(await s.a.beginCensus(), []);
    return listens;
  }, 'the first news');
  return { heard, stop };
}

export function newsContract(rule: Rule): void {
  const limited = { maxSandboxes: 1, maxPerUser: 1 };

  rule('[C-03] a slot that frees is told to every replica, with whose it was', async (s) => {
    const { heard } = await hearing(s);
    const { fence } = await s.destroying();
    await s.a.drop(ID, fence, null);
    await s.ready();
    await s.a.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: 1, logTail: '' });
    await until(() => heard.length === 2, 'the news');
    expect(heard).toEqual(['slot-freed mine', 'slot-freed mine']);
  });

  rule(
    '[C-03] a sandbox that becomes unheld at a limit is told',
    async (s) => {
      const { heard } = await hearing(s);
      await counted(s);
      await s.unheld();
      await until(() => heard.length === 1, 'the news');
      expect(heard).toEqual(['unheld mine']);
    },
    limited,
  );

  /** Something that is told after all that was told before. */
  const lastWord = async (s: Scene, heard: readonly string[]): Promise<void> => {
    const other = otherIdentity('t9', 'u9');
    const claim = await s.a.condemnByIntent(other.id, C1);
    if (typeof claim === 'string') throw new Error(claim);
    await s.a.drop(other.id, claim.fence, null);
    await until(() => heard.includes('slot-freed null'), 'the last word');
  };

  rule(
    '[C-03] below every limit it is no news',
    async (s) => {
      const { heard } = await hearing(s);
      await counted(s);
      await s.unheld();
      await lastWord(s, heard);
      expect(heard).toEqual(['slot-freed null']);
    },
    { maxSandboxes: 2 },
  );

  rule(
    '[C-03] nor is it while somebody else holds it',
    async (s) => {
      const { heard } = await hearing(s);
      await counted(s);
      const { fence } = await s.ready();
      await s.take(s.b);
      await s.a.release(ID, fence);
      await lastWord(s, heard);
      expect(heard).toEqual(['slot-freed null']);
    },
    limited,
  );

  rule('[C-03] nothing is told any more once nobody listens', async (s) => {
    const { heard, stop } = await hearing(s);
    const second = await hearing(s);
    stop();
    const { fence } = await s.destroying();
    await s.a.drop(ID, fence, null);
    await until(() => second.heard.length === 1, 'the news');
    expect(heard).toEqual([]);
  });
}
