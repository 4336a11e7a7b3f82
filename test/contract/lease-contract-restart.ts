import { expect } from 'vitest';
import { asContainerId, type Fence } from '../../src/domain/ids.ts';
import { C1, C2, HOUR, ID, otherIdentity } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function restartContract(rule: Rule): void {
  rule('[L-07] restart makes a ready record my start; the container is residue, holds are dropped', async (s) => {
    const before = await s.ready(s.a);
    const reply = await s.b.restart(ID, C1, null);
    const record = await s.record();
    expect(reply).toEqual({ record, fence: record.fence, residue: C1, life: record.life });
    expect(record).toMatchObject({ state: 'starting', owner: 'host:b', container: C1, url: null, verified: false });
    expect(record.holds.size).toBe(0);
    expect(record.fence).toBeGreaterThan(before.fence);
  });

  rule('[L-07] restart for a container that the record does not name is refused', async (s) => {
    await s.ready();
    expect(await s.expectUnchanged(() => s.a.restart(ID, C2, null))).toBe('moved');
    expect(await s.a.restart(otherIdentity('t2').id, C1, null)).toBe('moved');
  });

  rule('[L-07] of two that try, one wins', async (s) => {
    await s.ready();
    const replies = await Promise.all([s.a.restart(ID, C1, null), s.b.restart(ID, C1, null)]);
    expect(replies.filter((reply) => reply === 'moved')).toHaveLength(1);
  });

  rule('[L-31] residue names a stopped container in my start', async (s) => {
    const { fence } = await s.starting();
    const reply = await s.a.residue(ID, fence, C2);
    expect(reply).toMatchObject({ residue: C2, fence, record: { state: 'starting', container: C2 } });
    expect(await s.record()).toMatchObject({ container: C2 });
  });

  rule('[L-31] residue for another fence, another owner or another state is refused', async (s) => {
    const { fence } = await s.starting();
    await s.expectUnchanged(async () => {
      expect(await s.a.residue(ID, (fence + 1) as Fence, C2)).toBe('moved');
      expect(await s.b.residue(ID, fence, C2)).toBe('moved');
    });
    await s.a.activate(s.activation(fence));
    expect(await s.expectUnchanged(() => s.a.residue(ID, fence, C2))).toBe('moved');
    expect(await s.a.residue(otherIdentity('t2').id, fence, C2)).toBe('moved');
  });

  rule('[L-30] previous survives take, activate and restart', async (s) => {
    const previous = { endedAt: 5, reason: 'oom', exitCode: 137, logTail: 'é"\n' };
    await s.ready();
    await s.a.end(ID, C1, previous);
    expect(await s.take()).toMatchObject({ kind: 'starting', record: { previous } });
    const { fence } = await s.record();
    expect(await s.a.activate(s.activation(fence))).toMatchObject({ previous });
    expect(await s.a.restart(ID, C1, null)).toMatchObject({ record: { previous } });
    await s.a.residue(ID, (await s.record()).fence, asContainerId('x'));
    expect((await s.record()).previous).toEqual(previous);
  });

  rule('[L-30] restart tells why the container ended, if that is known', async (s) => {
    const previous = { endedAt: 5, reason: 'oom', exitCode: 137, logTail: 'x' };
    await s.ready();
    await s.a.restart(ID, C1, previous);
    expect((await s.record()).previous).toEqual(previous);
  });

  rule('[L-30] take carries previous from a tombstone for an hour, no longer', async (s) => {
    const previous = { endedAt: 5, reason: 'exited', exitCode: 0, logTail: '' };
    await s.ready();
    await s.a.end(ID, C1, previous);
    await s.expire(HOUR - 60_000);
    expect(await s.take()).toMatchObject({ record: { previous } });
    await s.a.activate(s.activation((await s.record()).fence));
    await s.a.end(ID, C1, previous);
    await s.expire(HOUR);
    expect(await s.take()).toMatchObject({ record: { previous: null } });
  });
}
