import { expect } from 'vitest';
import { C1, C2, ENGINE, ID } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

/** A reply that was lost: the caller sends the same operation again, knowing nothing of the first. */
export function repeatContract(rule: Rule): void {
  rule('[L-24] take twice: the start is still mine, under the fence of the later reply', async (s) => {
    await s.take();
    const { fence } = await s.starting();
    expect(await s.a.activate(s.activation(fence))).toMatchObject({ state: 'ready' });
  });

  rule('[L-24] take twice of a ready record: a hold more, which runs out', async (s) => {
    await s.unheld();
    await s.take();
    const reply = await s.take();
    expect(reply.kind).toBe('ready');
    expect((await s.record()).holds.size).toBe(2);
  });

  rule('[L-24] activate twice is refused the second time; taking again hands the same container out', async (s) => {
    const { fence } = await s.starting();
    await s.a.activate(s.activation(fence));
    expect(await s.expectUnchanged(() => s.a.activate(s.activation(fence)))).toBe('moved');
    expect(await s.take()).toMatchObject({ kind: 'ready', record: { container: C1 } });
  });

  rule('[L-24] verify twice is one', async (s) => {
    await s.ready();
    const first = await s.a.verify(ID, C1, 'http://x');
    expect(await s.expectUnchanged(() => s.a.verify(ID, C1, 'http://x'))).toEqual(first);
  });

  rule('[L-24] restart twice is refused the second time; taking again goes on with the same residue', async (s) => {
    await s.ready();
    await s.a.restart(ID, C1, null);
    expect(await s.expectUnchanged(() => s.a.restart(ID, C1, null))).toBe('moved');
    expect(await s.take()).toMatchObject({ kind: 'starting', residue: C1 });
  });

  rule('[L-24] residue twice is one', async (s) => {
    const { fence } = await s.starting();
    await s.a.residue(ID, fence, C2);
    expect(await s.a.residue(ID, fence, C2)).toMatchObject({ fence, residue: C2 });
  });

  rule('[L-24] keepalive and release twice are one', async (s) => {
    const { fence } = await s.ready();
    await s.a.keepalive(ID, fence);
    await s.a.keepalive(ID, fence);
    expect((await s.record()).holds.size).toBe(1);
    await s.a.release(ID, fence);
    await s.expectUnchanged(() => s.a.release(ID, fence));
  });

  rule('[L-24] adopt twice is refused the second time; the lease is mine and can be renewed', async (s) => {
    await s.ready(s.a);
    await s.expire();
    await s.b.adopt({ id: ID, container: null });
    expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: null }))).toBe('refused');
    const { fence } = await s.record();
    expect(await s.b.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
  });

  rule(
    '[L-24] a capacity claim twice is refused the second time; any replica finishes it once it expires',
    async (s) => {
      const { fence } = await s.unheld(s.a);
      await s.b.claim(ID, fence, { kind: 'capacity' });
      expect(await s.expectUnchanged(() => s.b.claim(ID, fence, { kind: 'capacity' }))).toBe('refused');
      await s.expire();
      const { fence: claimed } = await s.record();
      expect(await s.a.claim(ID, claimed, { kind: 'expired', container: null })).toMatchObject({ container: C1 });
    },
  );

  rule('[L-24] an explicit destroy twice is underway the second time', async (s) => {
    await s.ready();
    await s.a.condemnByIntent(ID, C1);
    expect(await s.expectUnchanged(() => s.a.condemnByIntent(ID, C1))).toBe('underway');
  });

  rule('[L-24] confirm twice answers the same', async (s) => {
    const { fence } = await s.destroying();
    const question = { kind: 'teardown', id: ID, fence, container: C1, engine: ENGINE } as const;
    expect(await s.a.confirm(question)).toEqual(await s.a.confirm(question));
  });

  rule('[L-24] drop and end twice do nothing the second time', async (s) => {
    const { fence } = await s.destroying();
    await s.a.drop(ID, fence, null);
    expect(await s.expectUnchanged(() => s.a.drop(ID, fence, null))).toBe('nothing');
    const why = { endedAt: 1, reason: 'x', exitCode: 1, logTail: '' };
    await s.ready();
    await s.a.end(ID, C1, why);
    expect(await s.expectUnchanged(() => s.a.end(ID, C1, why))).toBe('nothing');
  });

  rule('[L-24] renew and handover twice are one', async (s) => {
    const { fence } = await s.ready();
    await s.a.renew([{ id: ID, fence }]);
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    await s.a.handover([ID]);
    await s.expectUnchanged(() => s.a.handover([ID]));
  });

  rule('[L-24] reassert twice is refused the second time and changes nothing', async (s) => {
    const { fence } = await s.starting();
    const older = { ...s.found(), id: ID, fence };
    await s.harness.plant(ID, { v: '1' });
    await s.a.condemnByIntent(ID, null);
    expect(await s.a.reassert(older)).toMatchObject({ state: 'ready', owner: 'host:a' });
    expect(await s.expectUnchanged(() => s.a.reassert(older))).toBe('refused');
  });
}
