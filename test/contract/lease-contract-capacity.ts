import { expect } from 'vitest';
import { asContainerId, type Fence } from '../../src/domain/ids.ts';
import type { Spare } from '../../src/leases/lease-store.ts';
import { C1, ENGINE, ID, otherIdentity, type Scene, URL1 } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function capacityContract(rule: Rule): void {
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

  const spare = (name: string, createdAt: number, spec = 'spec-1'): Spare => {
    const container = asContainerId(name.repeat(32).slice(0, 64));
    return { container, engine: ENGINE, url: URL1, profile: 'default', spec, createdAt };
  };

  rule('[C-05] my start takes a spare of its profile and spec, the oldest first, each at most once', async (s) => {
    const [young, old] = [spare('s1', 2000), spare('s2', 1000)];
    await s.b.addSpare(young);
    await s.b.addSpare(old);
    const { fence } = await s.starting(s.a);
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toEqual(old);
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toEqual(young);
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toBeNull();
  });

  rule('[C-05] of equally old spares the first by its container is taken first', async (s) => {
    for (const name of ['s2', 's1', 's3']) await s.a.addSpare(spare(name, 1000));
    const { fence } = await s.starting();
    for (const name of ['s1', 's2', 's3']) {
      expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toEqual(spare(name, 1000));
    }
  });

  rule('[C-05] of two that want the last spare one gets it', async (s) => {
    await s.a.addSpare(spare('s1', 1000));
    const other = otherIdentity('t2');
    const mine = await s.starting(s.a);
    const peers = (await s.b.take({ ...other, spec: 'spec-1' })) as { fence: Fence };
    const got = await Promise.all([
      s.a.claimSpare(ID, mine.fence, 'default', 'spec-1'),
      s.b.claimSpare(other.id, peers.fence, 'default', 'spec-1'),
    ]);
    expect(got.filter((one) => one !== null)).toHaveLength(1);
  });

  rule('[C-05] adding a spare twice adds it once, and one that was claimed is not added again', async (s) => {
    await s.a.addSpare(spare('s1', 1000));
    await s.b.addSpare(spare('s1', 1000));
    const { fence } = await s.starting();
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toEqual(spare('s1', 1000));
    await s.b.addSpare(spare('s1', 1000));
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toBeNull();
  });

  rule('[C-05] a spare that is added again is known by what was said last', async (s) => {
    await s.a.addSpare(spare('s1', 1000, 'spec-0'));
    await s.b.addSpare({ ...spare('s1', 1000), url: 'http://moved' });
    const { fence } = await s.starting();
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-0')).toBeNull();
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toMatchObject({ url: 'http://moved' });
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toBeNull();
  });

  rule('[C-06] a spare of another profile or an older spec is left', async (s) => {
    await s.a.addSpare(spare('s1', 1000, 'spec-0'));
    const { fence } = await s.starting();
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toBeNull();
    expect(await s.a.claimSpare(ID, fence, 'other', 'spec-0')).toBeNull();
  });

  rule('[C-05] whoever is not starting takes no spare', async (s) => {
    await s.a.addSpare(spare('s1', 1000));
    const { fence } = await s.starting(s.a);
    expect(await s.b.claimSpare(ID, fence, 'default', 'spec-1')).toBe('moved');
    expect(await s.a.claimSpare(ID, (fence + 1) as Fence, 'default', 'spec-1')).toBe('moved');
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toMatchObject({ url: URL1 });
  });
}
