import { expect } from 'vitest';
import { asLife } from '../../src/domain/ids.ts';
import type { TakeReply } from '../../src/leases/lease-store.ts';
import { C1, ID, IDENTITY, otherIdentity, type Scene } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';
import { counted } from './lease-contract-capacity.ts';

const FULL = { kind: 'full', scope: 'fleet' };
const one = { maxSandboxes: 1 };
const MINE = { id: ID, userId: IDENTITY.userId };

const take = (s: Scene, thread: string, user?: string): Promise<TakeReply> =>
  s.b.take({ ...otherIdentity(thread, user), spec: 'spec-1' });
const sandboxes = async (s: Scene): Promise<number> => (await s.a.pool()).sandboxes;

export function censusContract(rule: Rule): void {
  rule(
    '[C-07] nothing new is let in before what runs was counted, and in each life anew',
    async (s) => {
      expect(await take(s, 't1')).toEqual({ kind: 'uncounted' });
      await counted(s);
      expect(await take(s, 't1')).toMatchObject({ kind: 'starting' });
      await s.harness.endLife();
      expect(await take(s, 't2')).toEqual({ kind: 'uncounted' });
      await counted(s);
      expect(await take(s, 't2')).toEqual(FULL);
    },
    one,
  );

  rule(
    '[C-07] what has a record needs no count: held, in removal, or of a start that expired',
    async (s) => {
      await counted(s);
      const { fence } = await s.unheld();
      await s.harness.endLife();
      expect(await s.take(s.b)).toMatchObject({ kind: 'ready' });
      expect(await s.b.condemnByIntent(ID, C1)).toMatchObject({ container: C1 });
      expect(await s.take()).toMatchObject({ kind: 'starting' });
      await s.expire();
      expect(await s.take(s.b)).toMatchObject({ kind: 'starting' });
      expect(fence).toBeGreaterThan(0);
    },
    one,
  );

  rule('[C-07] without a limit nobody needs to count', async (s) => {
    expect(await take(s, 't1')).toMatchObject({ kind: 'starting' });
  });

  rule(
    '[C-07] a container that runs without a record counts, and its own identity is let in all the same',
    async (s) => {
      await counted(s, [MINE]);
      expect(await take(s, 't2')).toEqual(FULL);
      expect(await s.take()).toMatchObject({ kind: 'starting' });
      expect(await sandboxes(s)).toBe(1);
    },
    one,
  );

  rule(
    '[C-07] it counts for the user that its container tells, or for nobody',
    async (s) => {
      await counted(s, [MINE, { id: otherIdentity('t9').id, userId: null }]);
      expect(await take(s, 't2')).toEqual({ kind: 'full', scope: 'user' });
      expect(await take(s, 't2', 'u2')).toMatchObject({ kind: 'starting' });
      expect(await take(s, 't9')).toMatchObject({ kind: 'starting' });
    },
    { maxPerUser: 1 },
  );

  rule(
    '[C-07] what has a record counts for the user whom that names, whatever its container tells',
    async (s) => {
      await counted(s);
      await s.ready();
      await counted(s, [{ id: ID, userId: null }]);
      expect(await take(s, 't2')).toEqual({ kind: 'full', scope: 'user' });
    },
    { maxPerUser: 1 },
  );

  rule(
    '[C-04] [C-07] a tombstone is newer than the list: only one that has stood for its lease is no record',
    async (s) => {
      await counted(s);
      await s.tombstone();
      await counted(s, [MINE]);
      expect(await sandboxes(s)).toBe(0);
      await s.expire();
      await counted(s, [MINE]);
      expect(await take(s, 't2')).toEqual(FULL);
      await counted(s);
      expect(await sandboxes(s)).toBe(0);
    },
    one,
  );

  rule(
    '[C-07] what runs no more counts no more, unless it has a record by now',
    async (s) => {
      await counted(s, [MINE, { id: otherIdentity('t1').id, userId: null }]);
      await s.starting();
      expect(await sandboxes(s)).toBe(2);
      await counted(s);
      expect(await sandboxes(s)).toBe(1);
      expect(await take(s, 't2')).toEqual(FULL);
    },
    one,
  );

  rule(
    '[C-07] a removal ends the count of what was counted without a record',
    async (s) => {
      await counted(s, [MINE]);
      const claim = await s.a.condemnByIntent(ID, C1);
      if (typeof claim === 'string') throw new Error(claim);
      await s.a.drop(ID, claim.fence, null);
      expect(await take(s, 't2')).toMatchObject({ kind: 'starting' });
    },
    one,
  );

  rule(
    '[C-07] an unreadable record is left as it counts',
    async (s) => {
      await counted(s);
      await s.ready();
      await s.harness.plant(ID, { v: '1' });
      await counted(s);
      expect(await take(s, 't2')).toEqual(FULL);
    },
    one,
  );

  rule(
    '[C-07] a list of another life does not do',
    async (s) => {
      expect(await s.a.census(asLife('another'), [])).toBe('moved');
      expect(await take(s, 't1')).toEqual({ kind: 'uncounted' });
      const began = await s.a.beginCensus();
      await s.harness.endLife();
      expect(await s.a.census(began, [])).toBe('moved');
      expect(await take(s, 't1')).toEqual({ kind: 'uncounted' });
    },
    one,
  );

  rule(
    '[C-07] any number of containers is counted, and uncounted',
    async (s) => {
      const many = Array.from({ length: 2_500 }, (_, n) => otherIdentity(`t${n}`, `u${n}`));
      const running = many.map(({ id, identity }) => ({ id, userId: identity.userId }));
      await counted(s, running);
      expect(await sandboxes(s)).toBe(2_500);
      await counted(s, running.slice(0, 300));
      expect(await sandboxes(s)).toBe(300);
    },
    one,
  );
}
