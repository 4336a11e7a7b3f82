import { expect } from 'vitest';
import { C1, C2, ENGINE, ID, otherIdentity } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function intentContract(rule: Rule): void {
  rule('[L-10] an explicit destroy takes a ready record over, with its holds, whoever owns it', async (s) => {
    const { fence } = await s.ready(s.a);
    const reply = await s.b.condemnByIntent(ID, C1);
    const record = await s.record();
    expect(reply).toMatchObject({ id: ID, fence: record.fence, container: C1, engine: ENGINE, life: record.life });
    expect(record).toMatchObject({ state: 'destroying', owner: 'host:b', container: C1 });
    expect(record.fence).toBeGreaterThan(fence);
  });

  rule('[L-10] an explicit destroy, executed late, cannot hit a newer container', async (s) => {
    await s.ready(s.a, C2);
    expect(await s.expectUnchanged(() => s.b.condemnByIntent(ID, C1))).toBe('nothing');
    expect(await s.expectUnchanged(() => s.b.condemnByIntent(ID, null))).toBe('nothing');
  });

  rule('[L-10] an explicit destroy waits for a live start, and takes an expired one over', async (s) => {
    const { fence } = await s.starting(s.a);
    await s.a.residue(ID, fence, C2);
    expect(await s.expectUnchanged(() => s.b.condemnByIntent(ID, C1))).toBe('wait');
    expect(await s.expectUnchanged(() => s.a.condemnByIntent(ID, C1))).toBe('wait');
    await s.expire();
    expect(await s.b.condemnByIntent(ID, null)).toMatchObject({ container: C2 });
    expect(await s.record()).toMatchObject({ state: 'destroying', owner: 'host:b', container: C2 });
    expect((await s.record()).fence).toBeGreaterThan(fence);
  });

  rule('[L-10] an explicit destroy of an expired start names the container that was found', async (s) => {
    const { fence } = await s.starting(s.a);
    await s.a.residue(ID, fence, C2);
    await s.expire();
    expect(await s.b.condemnByIntent(ID, C1)).toMatchObject({ container: C1 });
  });

  rule('[L-10] an explicit destroy without a record removes the container that was found', async (s) => {
    const { id } = otherIdentity('t2');
    expect(await s.a.condemnByIntent(id, null)).toBe('nothing');
    expect(await s.harness.dump(id)).toBeNull();
    expect(await s.a.condemnByIntent(id, C1)).toMatchObject({ id, container: C1, engine: null });
    expect(await s.record(id)).toMatchObject({ state: 'destroying', owner: 'host:a', container: C1 });
  });

  rule('[L-10] an explicit destroy over a tombstone removes the container that was found', async (s) => {
    const { fence } = await s.tombstone();
    expect(await s.expectUnchanged(() => s.b.condemnByIntent(ID, null))).toBe('nothing');
    expect(await s.b.condemnByIntent(ID, C2)).toMatchObject({ container: C2 });
    expect((await s.record()).fence).toBeGreaterThan(fence);
  });
}
