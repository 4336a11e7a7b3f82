import { expect } from 'vitest';
import { type Fence, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { C1, C2, ENGINE, expectAbout, ID, POLICY } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function lifeContract(rule: Rule): void {
  const idleNow = { kind: 'idle', unheldMs: 0 } as const;

  rule('[L-25] in a new life the first operation on a record clears verified and adds an unknown hold', async (s) => {
    const { fence, life } = await s.unheld(s.a);
    await s.harness.endLife();
    expect(await s.take(s.b)).toMatchObject({ kind: 'ready', heldBefore: true, record: { verified: false } });
    const record = await s.record();
    expect(record.life).not.toBe(life);
    expect(record.verified).toBe(false);
    expect(record.fence).toBeGreaterThan(fence);
    expectAbout(record.holds.get(UNKNOWN_HOLD)!, (await s.now()) + POLICY.holdTtlMs);
  });

  rule('[L-25] an operation that is refused has brought the record into the new life all the same', async (s) => {
    const { fence, life } = await s.unheld(s.a);
    await s.harness.endLife();
    expect(await s.a.claim(ID, fence, idleNow)).toBe('refused');
    const record = await s.record();
    expect(record).toMatchObject({ state: 'ready', verified: false });
    expect(record.life).not.toBe(life);
    expect([...record.holds.keys()]).toEqual([UNKNOWN_HOLD]);
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toBe('refused');
  });

  rule('[L-25] no reaper claims the record before that hold ran out', async (s) => {
    const { fence } = await s.unheld(s.a);
    await s.harness.endLife();
    await s.a.renew([{ id: ID, fence }]);
    await s.expire(POLICY.holdTtlMs - 10_000);
    expect(await s.a.claim(ID, fence, idleNow)).toBe('refused');
    expect(await s.b.claim(ID, fence, { kind: 'capacity' })).toBe('refused');
    await s.expire(10_000);
    expect(await s.a.claim(ID, fence, idleNow)).toMatchObject({ fence });
  });

  rule('[L-25] holds of before count on, and their keepalive works', async (s) => {
    const { fence } = await s.ready(s.a);
    await s.harness.endLife();
    const record = await s.b.keepalive(ID, fence);
    expect(record).toMatchObject({ verified: false });
    expect([...(await s.record()).holds.keys()].sort()).toEqual([UNKNOWN_HOLD, fence]);
  });

  rule('[L-25] only a ready record gets the hold', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.harness.endLife();
    const question = { kind: 'teardown', id: ID, fence, container: C1, engine: ENGINE } as const;
    expect(await s.a.confirm(question)).toMatchObject({ answer: 'mine' });
    expect((await s.record()).holds.size).toBe(0);
  });

  rule('[L-25] a claim and its confirm tell their lives, so that a new one in between is noticed', async (s) => {
    const { fence } = await s.unheld(s.a);
    const claim = await s.a.claim(ID, fence, idleNow);
    await s.harness.endLife();
    const answer = await s.a.confirm({ kind: 'teardown', id: ID, fence, container: C1, engine: ENGINE });
    expect(claim).toMatchObject({ life: expect.any(String) });
    expect(answer.life).not.toBe((claim as { life: string }).life);
  });

  rule('[L-25] no stray is removed beside a record that nobody looked at in this life', async (s) => {
    await s.ready(s.b);
    expect(await s.a.confirm({ kind: 'stray', id: ID, container: C2 })).toMatchObject({ answer: 'mine' });
    await s.harness.endLife();
    expect(await s.a.confirm({ kind: 'stray', id: ID, container: C2 })).toMatchObject({ answer: 'taken' });
    await s.b.verify(ID, C1, 'http://x');
    expect(await s.a.confirm({ kind: 'stray', id: ID, container: C2 })).toMatchObject({ answer: 'mine' });
  });

  rule('[L-25] a life ends when nobody renewed for a lease', async (s) => {
    const { life } = await s.starting();
    await s.harness.ageLife(POLICY.leaseMs - 10_000);
    expect((await s.starting()).life).toBe(life);
    await s.harness.ageLife(10_000);
    expect((await s.starting()).life).not.toBe(life);
  });

  rule('[L-25] every renewal pass keeps the life going, also an empty one', async (s) => {
    const { life } = await s.starting();
    for (let pass = 0; pass < 3; pass += 1) {
      await s.harness.ageLife(POLICY.leaseMs - 10_000);
      expect(await s.b.renew([])).toEqual(new Map());
    }
    expect((await s.starting()).life).toBe(life);
  });

  rule('[L-25] a renewal that comes too late begins a new life and revives none', async (s) => {
    const { fence, life } = await s.ready();
    await s.harness.ageLife(POLICY.leaseMs);
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    const record = await s.record();
    expect(record.life).not.toBe(life);
    expect(record.verified).toBe(false);
  });

  rule('[L-25] operations other than renewal do not keep a life going', async (s) => {
    const { fence, life } = await s.ready();
    await s.harness.ageLife(POLICY.leaseMs - 10_000);
    await s.a.keepalive(ID, fence);
    await s.take(s.b);
    await s.harness.ageLife(10_000);
    await s.take(s.b);
    expect((await s.record()).life).not.toBe(life);
  });

  rule('[L-25] a read shows the record as the new life sees it, and writes nothing', async (s) => {
    const { life } = await s.ready();
    await s.harness.endLife();
    const record = await s.expectUnchanged(() => s.record());
    expect(record.verified).toBe(false);
    expect(record.life).not.toBe(life);
    expect(record.holds.has(UNKNOWN_HOLD)).toBe(true);
  });

  rule('[L-25] a batch brings each of its records into the new life', async (s) => {
    const { fence } = await s.ready(s.b);
    await s.harness.endLife();
    await s.a.renew([{ id: ID, fence: (fence - 1) as Fence }]);
    const dump = await s.harness.dump(ID);
    await s.a.handover([ID]);
    expect(await s.harness.dump(ID)).toBe(dump);
    expect(await s.record()).toMatchObject({ owner: 'host:b', verified: false });
  });
}
