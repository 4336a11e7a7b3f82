import { expect } from 'vitest';
import { type Fence, type HoldId, NO_FENCE, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { countHolds, MAX_HOLDS, unheldSince } from '../../src/domain/sandbox.ts';
import { C1, expectAbout, ID, otherIdentity, POLICY } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function holdsContract(rule: Rule): void {
  rule('[L-08] keepalive lets a hold count again from now, through any replica', async (s) => {
    const { fence } = await s.ready(s.a);
    await s.expire(POLICY.holdTtlMs / 2);
    const reply = await s.b.keepalive(ID, fence);
    const record = await s.record();
    expect(reply).toEqual(record);
    expectAbout(record.holds.get(fence)!, (await s.now()) + POLICY.holdTtlMs);
    expectAbout(record.lastActiveAt, await s.now());
    expect(record).toMatchObject({ owner: 'host:a', fence });
  });

  rule('[L-08] keepalive never moves a lease', async (s) => {
    const { fence } = await s.ready(s.a);
    await s.expire();
    await s.b.keepalive(ID, fence);
    expect((await s.record()).expiresAt).toBeLessThanOrEqual(await s.now());
  });

  rule('[L-08] keepalive revives a hold that ran out', async (s) => {
    const { fence } = await s.ready();
    await s.expire(POLICY.holdTtlMs);
    expect(countHolds(await s.record(), await s.now())).toBe(0);
    await s.a.keepalive(ID, fence);
    expect(countHolds(await s.record(), await s.now())).toBe(1);
  });

  rule('[L-08] keepalive revives a hold that was forgotten, also one newer than the record', async (s) => {
    const { fence } = await s.unheld();
    await s.a.keepalive(ID, fence);
    await s.a.keepalive(ID, (fence + 5) as HoldId);
    expect([...(await s.record()).holds.keys()]).toEqual([fence, fence + 5]);
  });

  rule('[L-08] keepalive refuses a hold older than the present container', async (s) => {
    const { fence } = await s.ready();
    await s.a.restart(ID, C1, null);
    await s.a.activate(s.activation((await s.record()).fence));
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, fence))).toBe('hold_lost');
  });

  rule('[L-08] keepalive refuses every hold while the sandbox is started anew', async (s) => {
    const { fence } = await s.ready();
    await s.a.restart(ID, C1, null);
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, fence))).toBe('hold_lost');
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, (fence + 1e6) as HoldId))).toBe('hold_lost');
  });

  rule('[L-08] keepalive finds nothing that is unknown, destroying or gone, and creates nothing', async (s) => {
    const unknown = otherIdentity('t2').id;
    expect(await s.a.keepalive(unknown, 5 as HoldId)).toBe('not_found');
    expect(await s.harness.dump(unknown)).toBeNull();
    const { fence } = await s.destroying();
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, fence))).toBe('not_found');
    await s.a.drop(ID, fence, null);
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, fence))).toBe('not_found');
  });

  rule('[L-08] the unknown hold is nobody’s to keep or to release', async (s) => {
    await s.a.adopt({ id: ID, container: s.found() });
    expect(await s.expectUnchanged(() => s.a.keepalive(ID, UNKNOWN_HOLD))).toBe('hold_lost');
    expect(await s.expectUnchanged(() => s.a.release(ID, UNKNOWN_HOLD))).toMatchObject({ state: 'ready' });
  });

  rule('[L-08] release ends exactly that hold', async (s) => {
    const { fence: first } = await s.ready();
    await s.take();
    const { fence: second } = await s.record();
    const reply = await s.b.release(ID, first);
    expect(reply).toEqual(await s.record());
    expect(reply).toMatchObject({ owner: 'host:a', fence: second });
    expect([...(await s.record()).holds.keys()]).toEqual([second]);
  });

  rule('[L-08] a release twice is one', async (s) => {
    const { fence } = await s.unheld();
    await s.expire(60_000);
    expect(await s.expectUnchanged(() => s.a.release(ID, fence))).toMatchObject({ state: 'ready' });
  });

  rule('[L-08] a release of an unknown hold changes nothing', async (s) => {
    const { fence } = await s.ready();
    expect(await s.expectUnchanged(() => s.a.release(ID, (fence + 1) as Fence))).toMatchObject({ fence });
  });

  rule('[L-08] the last release starts the idle clock, an earlier one does not', async (s) => {
    const { fence: first } = await s.ready();
    await s.take();
    const { fence: second } = await s.record();
    await s.a.release(ID, first);
    expect(unheldSince(await s.record(), await s.now())).toBeNull();
    await s.expire(60_000);
    await s.a.release(ID, second);
    expectAbout(unheldSince(await s.record(), await s.now())!, await s.now());
  });

  rule('[L-08] release leaves a start and a removal alone, and finds nothing where nothing is', async (s) => {
    expect(await s.a.release(ID, 5 as HoldId)).toBe('not_found');
    const { fence } = await s.starting();
    expect(await s.expectUnchanged(() => s.a.release(ID, fence))).toMatchObject({ state: 'starting' });
    await s.a.claim(ID, fence, { kind: 'failed-start', container: C1 });
    expect(await s.expectUnchanged(() => s.a.release(ID, fence))).toMatchObject({ state: 'destroying' });
    await s.a.drop(ID, fence, null);
    expect(await s.expectUnchanged(() => s.a.release(ID, fence))).toBe('not_found');
  });

  rule('[L-26] a hold counts until its end by the store’s clock; from there the idle time runs', async (s) => {
    await s.ready();
    await s.expire(POLICY.holdTtlMs - 10_000);
    expect(countHolds(await s.record(), await s.now())).toBe(1);
    await s.expire(10_000);
    const record = await s.record();
    expect(countHolds(record, await s.now())).toBe(0);
    expectAbout(unheldSince(record, await s.now())!, await s.now());
  });

  rule(
    '[L-26] of more than 64 holds the one that would run out first is forgotten; keepalive revives it',
    async (s) => {
      const { fence } = await s.ready();
      await s.a.keepalive(ID, (fence + 1) as HoldId);
      await s.expire(1_000);
      await s.a.keepalive(ID, fence);
      for (let extra = 2; extra < MAX_HOLDS; extra += 1) await s.a.keepalive(ID, (fence + extra) as HoldId);
      const full = await s.record();
      expect(full.holds.size).toBe(MAX_HOLDS);
      await s.a.keepalive(ID, (fence + MAX_HOLDS) as HoldId);
      const over = await s.record();
      expect(over.holds.size).toBe(MAX_HOLDS);
      expect([...full.holds.keys()].filter((hold) => !over.holds.has(hold))).toEqual([fence + 1]);
      await s.a.keepalive(ID, (fence + 1) as HoldId);
      expect((await s.record()).holds.has((fence + 1) as HoldId)).toBe(true);
    },
  );

  rule('[L-26] holds that ran out are forgotten first', async (s) => {
    const { fence } = await s.ready();
    await s.expire(POLICY.holdTtlMs);
    await s.take();
    expect([...(await s.record()).holds.keys()]).not.toContain(fence);
  });

  rule('[T-01] the silent caller’s hold counts for its time, then the idle time begins', async (s) => {
    const { fence } = await s.ready();
    const idle = { kind: 'idle', unheldMs: 600_000 } as const;
    await s.expire(POLICY.holdTtlMs - 10_000);
    expect(await s.a.claim(ID, fence, idle)).toBe('refused');
    await s.expire(10_000 + 590_000);
    expect(await s.a.claim(ID, fence, idle)).toBe('refused');
    await s.expire(10_000);
    expect(await s.a.claim(ID, fence, idle)).toMatchObject({ fence, container: C1 });
  });

  rule('[T-01] an unheld sandbox may be claimed after its idle time, not before', async (s) => {
    const { fence } = await s.unheld();
    await s.expire(590_000);
    expect(await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 600_000 })).toBe('refused');
    await s.expire(10_000);
    expect(await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 600_000 })).toMatchObject({ fence });
  });

  rule('[T-01] keepalive through any replica counts at once', async (s) => {
    const { fence } = await s.unheld(s.a);
    await s.expire(600_000);
    await s.b.keepalive(ID, fence);
    expect(await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 600_000 })).toBe('refused');
  });

  rule('[L-08] a former spare has no fence of its own: every hold of its identity is of it', async (s) => {
    const { fence } = await s.starting();
    await s.a.activate({ ...s.activation(fence), since: NO_FENCE });
    expect(await s.a.keepalive(ID, 1 as HoldId)).toMatchObject({ state: 'ready' });
  });
}
