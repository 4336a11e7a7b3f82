import { expect } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import type { RunningContainer } from '../../src/leases/lease-store.ts';
import { C1, ID, IDENTITY, otherIdentity, type Scene } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

/** What runs was counted. */
export async function counted(s: Scene, running: readonly RunningContainer[] = []): Promise<void> {
  expect(await s.a.census(await s.a.beginCensus(), running)).toBe('counted');
}

export function capacityContract(anyRule: Rule): void {
  const rule: Rule = (title, body, policy) =>
    anyRule(
      title,
      async (s) => {
        await counted(s);
        await body(s);
      },
      policy,
    );
  const two = { maxSandboxes: 2 };
  const take = (s: Scene, thread: string, user?: string, store = s.a) =>
    store.take({ ...otherIdentity(thread, user), spec: 'spec-1' });

  rule(
    '[C-01] the fleet never has more than its limit, and a refused take writes nothing',
    async (s) => {
      await take(s, 't1', 'u1', s.a);
      await take(s, 't2', 'u2', s.b);
      const reply = await s.expectUnchanged(() => s.take(s.b));
      expect(reply).toEqual({ kind: 'full', scope: 'fleet' });
    },
    two,
  );

  rule(
    '[C-01] a user never has more than the limit of one, and holds nobody else up',
    async (s) => {
      await take(s, 't1', 'u1');
      expect(await take(s, 't2', 'u1', s.b)).toEqual({ kind: 'full', scope: 'user' });
      expect(await take(s, 't2', 'u2', s.b)).toMatchObject({ kind: 'starting' });
    },
    { maxPerUser: 1 },
  );

  rule(
    '[C-01] of many at once only as many are let in as there is room for',
    async (s) => {
      const takes = Array.from({ length: 10 }, (_, n) => take(s, `t${n}`, `u${n}`, n % 2 === 0 ? s.a : s.b));
      const replies = await Promise.all(takes);
      expect(replies.filter(({ kind }) => kind === 'starting')).toHaveLength(2);
    },
    two,
  );

  rule(
    '[C-04] a sandbox counts while it starts, is ready or is removed; a tombstone does not',
    async (s) => {
      const only = { kind: 'full', scope: 'fleet' };
      const { fence } = await s.starting();
      expect(await take(s, 't2')).toEqual(only);
      await s.a.activate(s.activation(fence));
      expect(await take(s, 't2')).toEqual(only);
      await s.a.release(ID, fence);
      await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 0 });
      expect(await take(s, 't2')).toEqual(only);
      await s.a.drop(ID, fence, null);
      expect(await take(s, 't2')).toMatchObject({ kind: 'starting' });
      expect(await s.take()).toEqual(only);
    },
    { maxSandboxes: 1 },
  );

  rule(
    '[C-04] a container that ended frees its slot',
    async (s) => {
      await s.ready();
      await s.a.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: 1, logTail: '' });
      expect(await take(s, 't2')).toMatchObject({ kind: 'starting' });
    },
    { maxSandboxes: 1, maxPerUser: 1 },
  );

  rule(
    '[C-03] while others wait nothing new is let in, only what counts already',
    async (s) => {
      const waiting = { ...otherIdentity('t1'), spec: 'spec-1' };
      expect(await s.a.take({ ...waiting, behind: 'user' })).toEqual({ kind: 'full', scope: 'user' });
      expect(await s.a.take({ ...waiting, behind: 'fleet' })).toEqual({ kind: 'full', scope: 'fleet' });
      await counted(s, [{ id: waiting.id, userId: null }]);
      expect(await s.a.take({ ...waiting, behind: 'fleet' })).toMatchObject({ kind: 'starting' });
      await s.ready();
      expect(await s.b.take({ id: ID, identity: IDENTITY, spec: 'spec-1', behind: 'fleet' })).toMatchObject({
        kind: 'ready',
      });
    },
    { maxSandboxes: 10 },
  );

  rule(
    '[C-04] an identity that is counted already is always let in',
    async (s) => {
      const { fence } = await s.ready();
      expect(await s.take(s.b)).toMatchObject({ kind: 'ready' });
      expect(await s.b.restart(ID, C1, null)).toMatchObject({ residue: C1 });
      expect(await s.take(s.b)).toMatchObject({ kind: 'starting' });
      expect(fence).toBeGreaterThan(0);
    },
    { maxSandboxes: 1, maxPerUser: 1 },
  );

  rule(
    '[C-07] adoption is never refused for capacity, and counts',
    async (s) => {
      await take(s, 't1');
      expect(await s.a.adopt({ id: ID, container: s.found() })).toMatchObject({ state: 'ready' });
      const other = otherIdentity('t2');
      const again = await s.a.reassert({ ...s.found(), id: other.id, fence: 5 as Fence, userId: 'u9' });
      expect(again).toMatchObject({ state: 'ready' });
      expect(await take(s, 't3')).toEqual({ kind: 'full', scope: 'fleet' });
    },
    { maxSandboxes: 1 },
  );

  rule(
    '[C-07] a record adopted without its user counts for the user once that is known',
    async (s) => {
      await s.a.adopt({ id: ID, container: { ...s.found(), profile: null, userId: null, threadId: null } });
      await s.take();
      expect(await take(s, 't2')).toEqual({ kind: 'full', scope: 'user' });
    },
    { maxPerUser: 1 },
  );

  rule(
    '[C-04] an unreadable record that is cleared frees its slot',
    async (s) => {
      await s.ready();
      await s.harness.plant(ID, { v: '1' });
      expect(await take(s, 't2')).toMatchObject({ kind: 'full' });
      await s.a.condemnByIntent(ID, null);
      expect(await take(s, 't2')).toMatchObject({ kind: 'starting' });
    },
    { maxSandboxes: 1, maxPerUser: 1 },
  );
}
