import { expect } from 'vitest';
import { asContainerId, type Fence } from '../../src/domain/ids.ts';
import type { Spare } from '../../src/leases/lease-store.ts';
import { ENGINE, ID, otherIdentity, POLICY, URL1 } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function sparesContract(rule: Rule): void {
  const spare = (name: string, createdAt: number, spec = 'spec-1'): Spare => {
    const container = asContainerId(name.repeat(32).slice(0, 64));
    return { container, name: `sandbox-spare-${name}`, engine: ENGINE, url: URL1, profile: 'default', spec, createdAt };
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

  rule('[C-05] the record of a start does not name the spare that it claimed', async (s) => {
    await s.a.addSpare(spare('s1', 1000));
    const { fence } = await s.starting(s.a);
    await s.a.claimSpare(ID, fence, 'default', 'spec-1');
    await s.harness.age(ID, POLICY.leaseMs);
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting', residue: null });
  });

  rule('[C-05] a spare that is retired can be claimed by nobody and is not added again; twice is once', async (s) => {
    const { container } = spare('s1', 1000);
    await s.a.addSpare(spare('s1', 1000));
    expect(await s.b.retireSpare(container)).toBe(true);
    expect(await s.a.retireSpare(container)).toBe(true);
    await s.a.addSpare(spare('s1', 1000));
    const { fence } = await s.starting();
    expect(await s.a.claimSpare(ID, fence, 'default', 'spec-1')).toBeNull();
    expect((await s.a.pool()).spares).toEqual([]);
  });

  rule('[C-05] a spare that was claimed cannot be retired', async (s) => {
    const { container } = spare('s1', 1000);
    await s.a.addSpare(spare('s1', 1000));
    const { fence } = await s.starting();
    await s.a.claimSpare(ID, fence, 'default', 'spec-1');
    expect(await s.b.retireSpare(container)).toBe(false);
    expect(await s.a.retireSpare(container)).toBe(false);
  });

  rule('[C-05] the pool shows every spare that can be claimed, and how many sandboxes there are', async (s) => {
    expect(await s.a.pool()).toEqual({ spares: [], sandboxes: 0 });
    await s.a.addSpare(spare('s1', 1000));
    await s.a.addSpare(spare('s2', 2000, 'spec-0'));
    const { fence } = await s.starting();
    const { spares, sandboxes } = await s.b.pool();
    expect(new Set(spares)).toEqual(new Set([spare('s1', 1000), spare('s2', 2000, 'spec-0')]));
    expect(sandboxes).toBe(1);
    await s.a.claimSpare(ID, fence, 'default', 'spec-1');
    expect((await s.b.pool()).spares).toEqual([spare('s2', 2000, 'spec-0')]);
  });

  rule('[C-06] one replica tends the pool until it leaves it', async (s) => {
    expect(await s.a.tendSpares()).toBe(true);
    expect(await s.b.tendSpares()).toBe(false);
    expect(await s.a.tendSpares()).toBe(true);
    await s.b.leaveSpares();
    expect(await s.b.tendSpares()).toBe(false);
    await s.a.leaveSpares();
    expect(await s.b.tendSpares()).toBe(true);
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
