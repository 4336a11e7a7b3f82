import { expect } from 'vitest';
import type { ContainerId, Fence } from '../../src/domain/ids.ts';
import { C1, C2, ENGINE, expectAbout, HOUR, ID, IDENTITY, POLICY } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

const teardown = (fence: Fence, container: ContainerId = C1) =>
  ({ kind: 'teardown', id: ID, fence, container, engine: ENGINE }) as const;
const residue = (fence: Fence, container: ContainerId = C1) => ({ kind: 'residue', id: ID, fence, container }) as const;
const stray = (container: ContainerId) => ({ kind: 'stray', id: ID, container }) as const;
const why = { endedAt: 1_700_000_000_000, reason: 'oom-killed', exitCode: 137, logTail: 'last "words"\n' };

export function confirmContract(rule: Rule): void {
  rule('[L-12] mine: my removal of this fence, whose marker is refreshed', async (s) => {
    const { fence, life } = await s.destroying();
    await s.expire();
    expect(await s.a.confirm(teardown(fence))).toEqual({ answer: 'mine', life });
    const record = await s.record();
    expect(record).toMatchObject({ state: 'destroying', owner: 'host:a', fence, container: C1 });
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-12] mine: where the record is gone the marker is written again', async (s) => {
    expect(await s.a.confirm(teardown(77 as Fence))).toMatchObject({ answer: 'mine' });
    const marker = { state: 'destroying', owner: 'host:a', fence: 77, container: C1, engine: ENGINE };
    expect(await s.record()).toMatchObject(marker);
    expect(await s.a.drop(ID, 77 as Fence, null)).toBe('dropped');
  });

  rule('[L-12] named: a ready record hands this container out', async (s) => {
    const { fence } = await s.ready(s.b);
    expect(await s.expectUnchanged(() => s.a.confirm(teardown(fence)))).toMatchObject({ answer: 'named' });
    expect(await s.expectUnchanged(() => s.a.confirm(residue(fence)))).toMatchObject({ answer: 'named' });
    expect(await s.expectUnchanged(() => s.a.confirm(stray(C1)))).toMatchObject({ answer: 'named' });
  });

  rule('[L-12] starting: a start that names no container yet may have found this one', async (s) => {
    const { fence } = await s.starting(s.b);
    for (const question of [teardown(fence), residue(fence), stray(C1)]) {
      expect(await s.expectUnchanged(() => s.a.confirm(question))).toMatchObject({ answer: 'starting' });
    }
  });

  rule('[L-12] taken: a start that names it finishes the removal', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.take(s.b);
    for (const question of [teardown(fence), residue(fence), stray(C1), stray(C2)]) {
      expect(await s.expectUnchanged(() => s.a.confirm(question))).toMatchObject({ answer: 'taken' });
    }
  });

  rule('[L-12] taken: a peer’s removal, or one of mine under another fence', async (s) => {
    const { fence } = await s.destroying(s.b);
    for (const question of [teardown(fence), teardown((fence + 1) as Fence), residue(fence), stray(C1)]) {
      expect(await s.expectUnchanged(() => s.a.confirm(question))).toMatchObject({ answer: 'taken' });
    }
    expect(await s.b.confirm(teardown((fence + 1) as Fence))).toMatchObject({ answer: 'taken' });
  });

  rule('[L-12] taken: a ready record that names another container has nothing to do with this teardown', async (s) => {
    const { fence } = await s.ready(s.b);
    expect(await s.expectUnchanged(() => s.a.confirm(teardown(fence, C2)))).toMatchObject({ answer: 'taken' });
    expect(await s.expectUnchanged(() => s.b.confirm(residue(fence, C2)))).toMatchObject({ answer: 'taken' });
  });

  rule('[L-12] residue is mine under my start of this fence, whose lease is refreshed', async (s) => {
    await s.destroying(s.b);
    const { fence, life } = await s.starting(s.a);
    await s.expire();
    expect(await s.a.confirm(residue(fence))).toEqual({ answer: 'mine', life });
    expectAbout((await s.record()).expiresAt, (await s.now()) + POLICY.leaseMs);
    expect(await s.a.confirm(residue((fence + 1) as Fence))).toMatchObject({ answer: 'taken' });
  });

  rule('[L-12] residue without a record is taken, and nothing is written', async (s) => {
    expect(await s.expectUnchanged(() => s.a.confirm(residue(5 as Fence)))).toMatchObject({ answer: 'taken' });
  });

  rule('[L-12] a stray is mine if a verified record names another container', async (s) => {
    await s.ready(s.b);
    expect(await s.expectUnchanged(() => s.a.confirm(stray(C2)))).toMatchObject({ answer: 'mine' });
  });

  rule('[L-12] a stray beside an unverified record is not', async (s) => {
    const { fence } = await s.starting(s.b);
    await s.b.activate(s.activation(fence, true));
    expect(await s.expectUnchanged(() => s.a.confirm(stray(C2)))).toMatchObject({ answer: 'taken' });
  });

  rule('[L-12] a stray is mine where there is no record or only a tombstone; no marker is written', async (s) => {
    expect(await s.expectUnchanged(() => s.a.confirm(stray(C1)))).toMatchObject({ answer: 'mine' });
    await s.tombstone(s.b);
    expect(await s.expectUnchanged(() => s.a.confirm(stray(C1)))).toMatchObject({ answer: 'mine' });
  });

  rule('[L-15] drop turns my removal into a tombstone that tells what it was given', async (s) => {
    const { fence } = await s.destroying();
    expect(await s.a.drop(ID, fence, why)).toBe('dropped');
    const { profile, userId, threadId } = IDENTITY;
    const stone = { state: 'gone', fence, container: null, url: null, previous: why, profile, userId, threadId };
    expect(await s.record()).toMatchObject(stone);
    expectAbout((await s.record()).expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-15] drop of anything else does nothing', async (s) => {
    expect(await s.expectUnchanged(() => s.a.drop(ID, 5 as Fence, null))).toBe('nothing');
    const { fence } = await s.unheld(s.a);
    expect(await s.expectUnchanged(() => s.a.drop(ID, fence, null))).toBe('nothing');
    await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 0 });
    expect(await s.expectUnchanged(() => s.b.drop(ID, fence, null))).toBe('nothing');
    expect(await s.expectUnchanged(() => s.a.drop(ID, (fence + 1) as Fence, null))).toBe('nothing');
  });

  rule(
    '[L-15] while the tombstone stands, renew says lost; reassert, adopt and a late confirm are refused',
    async (s) => {
      const { fence } = await s.tombstone(s.a);
      await s.expectUnchanged(async () => {
        expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'lost']]));
        expect(await s.b.renew([{ id: ID, fence: (fence - 1) as Fence }])).toEqual(new Map([[ID, 'lost']]));
        expect(await s.a.reassert({ ...s.found(), id: ID, fence })).toBe('refused');
        expect(await s.b.adopt({ id: ID, container: s.found() })).toBe('refused');
        expect(await s.a.confirm(teardown(fence))).toMatchObject({ answer: 'taken' });
        expect(await s.a.confirm(residue(fence))).toMatchObject({ answer: 'taken' });
      });
    },
  );

  rule('[L-15] a tombstone older than the caller’s fence shows a store that went back: lapsed, reassert', async (s) => {
    const { fence } = await s.tombstone(s.a);
    const newer = (fence + 1) as Fence;
    expect(await s.a.renew([{ id: ID, fence: newer }])).toEqual(new Map([[ID, 'lapsed']]));
    expect(await s.a.reassert({ ...s.found(), id: ID, fence: newer })).toMatchObject({ state: 'ready' });
  });

  rule('[L-15] take starts afresh over a tombstone', async (s) => {
    const { fence } = await s.tombstone(s.a);
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting', residue: null, record: { owner: 'host:b' } });
    expect((await s.record()).fence).toBeGreaterThan(fence);
  });

  rule('[L-15] a tombstone that has stood for a lease counts as no record', async (s) => {
    const { fence } = await s.tombstone(s.a);
    await s.expire();
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'lapsed']]));
    expect(await s.a.confirm(teardown(fence))).toMatchObject({ answer: 'mine' });
    expect(await s.a.drop(ID, fence, null)).toBe('dropped');
    await s.expire();
    expect(await s.b.adopt({ id: ID, container: s.found() })).toMatchObject({ state: 'ready', owner: 'host:b' });
  });

  rule('[L-30] end turns a ready record of mine into a tombstone that tells why, for an hour', async (s) => {
    const { fence } = await s.ready();
    expect(await s.a.end(ID, C1, why)).toBe('ended');
    expect(await s.record()).toMatchObject({ state: 'gone', fence, container: null, previous: why });
    await s.expire(HOUR - 60_000);
    expect(await s.record()).toMatchObject({ state: 'gone', previous: why });
    await s.expire(60_000);
    expect(await s.state()).toBe('absent');
  });

  rule('[L-30] end of an expired record of a peer does the same, of a live one nothing', async (s) => {
    await s.ready(s.a);
    expect(await s.expectUnchanged(() => s.b.end(ID, C1, why))).toBe('nothing');
    await s.expire();
    expect(await s.b.end(ID, C1, why)).toBe('ended');
    expect(await s.record()).toMatchObject({ state: 'gone', previous: why });
  });

  rule('[L-30] end of a container that the record does not name, or of another state, is nothing', async (s) => {
    expect(await s.expectUnchanged(() => s.a.end(ID, C1, why))).toBe('nothing');
    await s.ready();
    expect(await s.expectUnchanged(() => s.a.end(ID, C2, why))).toBe('nothing');
    await s.a.restart(ID, C1, null);
    expect(await s.expectUnchanged(() => s.a.end(ID, C1, why))).toBe('nothing');
  });

  rule('[L-30] a claim carries previous, and drop keeps only what it is given', async (s) => {
    await s.ready();
    await s.a.end(ID, C1, why);
    const { fence } = await s.starting();
    expect(await s.a.claim(ID, fence, { kind: 'failed-start', container: C1 })).toMatchObject({ previous: why });
    await s.a.drop(ID, fence, null);
    expect((await s.record()).previous).toBeNull();
  });
}
