import { expect } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import { C1, C2, ENGINE, expectAbout, ID, POLICY } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

const idle = { kind: 'idle', unheldMs: 600_000 } as const;
const idleNow = { kind: 'idle', unheldMs: 0 } as const;
const capacity = { kind: 'capacity' } as const;
const expired = { kind: 'expired', container: null } as const;
const failed = { kind: 'failed-start', container: C1 } as const;

export function claimContract(rule: Rule): void {
  rule('[L-10] an idle claim of mine keeps its fence and announces the removal', async (s) => {
    const { fence, life } = await s.unheld();
    await s.expire(600_000);
    const reply = await s.a.claim(ID, fence, idle);
    expect(reply).toEqual({ id: ID, fence, container: C1, engine: ENGINE, life, previous: null });
    const record = await s.record();
    expect(record).toMatchObject({ state: 'destroying', owner: 'host:a', fence, container: C1, url: null });
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-10] an idle claim against a peer is refused, also when its lease has expired', async (s) => {
    const { fence } = await s.unheld(s.a);
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, idleNow))).toBe('refused');
    await s.expire();
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, idleNow))).toBe('refused');
  });

  rule('[L-10] a claim for another fence is refused', async (s) => {
    const { fence } = await s.unheld();
    for (const other of [fence - 1, fence + 1] as Fence[]) {
      for (const condition of [idleNow, capacity]) {
        expect(await s.expectUnchanged(() => s.a.claim(ID, other, condition))).toBe('refused');
      }
    }
  });

  rule('[L-10] a claim while a hold counts is refused', async (s) => {
    const { fence } = await s.ready();
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toBe('refused');
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, capacity))).toBe('refused');
  });

  rule('[L-10] a claim before the idle time is over is refused', async (s) => {
    const { fence } = await s.unheld();
    await s.expire(590_000);
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idle))).toBe('refused');
  });

  rule('[L-10] a claim of nothing is refused and writes nothing', async (s) => {
    expect(await s.expectUnchanged(() => s.a.claim(ID, 5 as Fence, idleNow))).toBe('refused');
    const { fence } = await s.tombstone();
    for (const condition of [idleNow, capacity, expired, failed]) {
      expect(await s.expectUnchanged(() => s.a.claim(ID, fence, condition))).toBe('refused');
    }
  });

  rule('[L-10] a claim for capacity takes anybody’s: a peer’s under a new fence', async (s) => {
    const { fence } = await s.unheld(s.a);
    const reply = await s.b.claim(ID, fence, capacity);
    const record = await s.record();
    expect(reply).toMatchObject({ fence: record.fence, container: C1, engine: ENGINE });
    expect(record).toMatchObject({ state: 'destroying', owner: 'host:b' });
    expect(record.fence).toBeGreaterThan(fence);
  });

  rule('[L-10] a claim for capacity of my own keeps the fence', async (s) => {
    const { fence } = await s.unheld(s.a);
    expect(await s.a.claim(ID, fence, capacity)).toMatchObject({ fence });
  });

  rule('[L-10] claims for idleness and capacity are for ready records only', async (s) => {
    const { fence } = await s.starting();
    for (const condition of [idleNow, capacity]) {
      expect(await s.expectUnchanged(() => s.a.claim(ID, fence, condition))).toBe('refused');
    }
  });

  rule('[L-11] the same claim twice by one owner is one claim', async (s) => {
    const { fence } = await s.unheld();
    const first = await s.a.claim(ID, fence, idleNow);
    expect(first).toMatchObject({ fence });
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toEqual(first);
  });

  rule('[L-11] it is one claim also after its lease has ended, as long as nobody took it over', async (s) => {
    const { fence } = await s.destroying();
    await s.expire();
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toMatchObject({ fence, container: C1 });
  });

  rule('[L-11] a claim of what a peer is destroying is refused', async (s) => {
    const { fence } = await s.destroying(s.a);
    for (const condition of [idleNow, capacity, expired, failed]) {
      expect(await s.expectUnchanged(() => s.b.claim(ID, fence, condition))).toBe('refused');
    }
  });

  rule('[L-11] nothing but take and drop leads out of destroying', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.expectUnchanged(async () => {
      expect(await s.a.activate(s.activation(fence))).toBe('moved');
      expect(await s.a.verify(ID, C1, 'http://x')).toBe('moved');
      expect(await s.a.restart(ID, C1, null)).toBe('moved');
      expect(await s.a.residue(ID, fence, C1)).toBe('moved');
      expect(await s.b.adopt({ id: ID, container: s.found() })).toBe('refused');
      expect(await s.b.condemnByIntent(ID, C1)).toBe('underway');
      expect(await s.a.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: null, logTail: '' })).toBe('nothing');
      expect(await s.a.reassert({ ...s.found(), id: ID, fence })).toBe('refused');
      expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'lost']]));
      await s.a.keepalive(ID, fence);
      await s.a.release(ID, fence);
    });
    await s.expire();
    expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: s.found() }))).toBe('refused');
    await s.a.drop(ID, fence, null);
    expect(await s.state()).toBe('gone');
  });

  rule('[L-10] [A-15] its acquirer may replace what nobody else holds, and no other', async (s) => {
    const replace = { kind: 'replace' } as const;
    const { fence } = await s.ready(s.a);
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, replace))).toBe('refused');
    const taken = await s.take(s.a);
    const second = taken.kind === 'ready' ? taken.hold : fence;
    expect(await s.expectUnchanged(() => s.a.claim(ID, second, replace))).toBe('refused');
    await s.a.release(ID, fence);
    expect(await s.a.claim(ID, second, replace)).toMatchObject({ fence: second, container: C1 });
    expect(await s.state()).toBe('destroying');
  });

  rule('[L-31] an expired destroying record of anybody is claimed under a new fence', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.expire();
    const reply = await s.b.claim(ID, fence, { kind: 'expired', container: C2 });
    const record = await s.record();
    expect(reply).toMatchObject({ fence: record.fence, container: C1, engine: ENGINE });
    expect(record).toMatchObject({ state: 'destroying', owner: 'host:b', container: C1 });
    expect(record.fence).toBeGreaterThan(fence);
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-31] an expired destroying record of my own gets a new fence as well', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.expire();
    await s.a.claim(ID, fence, expired);
    expect((await s.record()).fence).toBeGreaterThan(fence);
  });

  rule('[L-31] an expired start is claimed, naming the container that was found, else its residue', async (s) => {
    const first = await s.starting(s.a);
    await s.a.residue(ID, first.fence, C2);
    await s.expire();
    expect(await s.b.claim(ID, first.fence, { kind: 'expired', container: C1 })).toMatchObject({ container: C1 });
    const second = await s.starting(s.a);
    await s.a.residue(ID, second.fence, C2);
    await s.expire();
    const reply = await s.b.claim(ID, second.fence, expired);
    expect(reply).toMatchObject({ container: C2 });
    expect(await s.record()).toMatchObject({ state: 'destroying', owner: 'host:b', container: C2 });
    expect((await s.record()).fence).toBeGreaterThan(second.fence);
  });

  rule('[L-31] my own failed start is claimed under its fence, naming the container it made', async (s) => {
    const { fence } = await s.starting();
    expect(await s.a.claim(ID, fence, failed)).toMatchObject({ fence, container: C1 });
    expect(await s.record()).toMatchObject({ state: 'destroying', owner: 'host:a', fence, container: C1 });
  });

  rule('[L-31] a failed start that made nothing leaves its residue to remove', async (s) => {
    const { fence } = await s.starting();
    await s.a.residue(ID, fence, C2);
    expect(await s.a.claim(ID, fence, { kind: 'failed-start', container: null })).toMatchObject({ container: C2 });
  });

  rule('[L-31] nothing else of a peer’s can be claimed: not its live start, not its live removal', async (s) => {
    const { fence } = await s.starting(s.a);
    for (const condition of [failed, expired]) {
      expect(await s.expectUnchanged(() => s.b.claim(ID, fence, condition))).toBe('refused');
    }
    await s.a.activate(s.activation(fence));
    await s.expire();
    for (const condition of [failed, expired]) {
      expect(await s.expectUnchanged(() => s.b.claim(ID, fence, condition))).toBe('refused');
    }
  });

  rule('[L-31] my own failed start is claimed for its fence only, and also after its lease has ended', async (s) => {
    const { fence } = await s.starting(s.a);
    expect(await s.expectUnchanged(() => s.a.claim(ID, (fence + 1) as Fence, failed))).toBe('refused');
    await s.expire();
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, failed))).toBe('refused');
    expect(await s.a.claim(ID, fence, failed)).toMatchObject({ fence, container: C1 });
  });

  rule('[L-10] a claim at the end of a replica takes what is its own and ready, whatever its holds', async (s) => {
    const { fence } = await s.starting(s.a);
    const shutdown = { kind: 'shutdown' } as const;
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, shutdown))).toBe('refused');
    await s.a.activate(s.activation(fence));
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, shutdown))).toBe('refused');
    expect(await s.a.claim(ID, fence, shutdown)).toMatchObject({ fence, container: C1 });
    expect(await s.state()).toBe('destroying');
  });

  rule('[L-10] an unsettled record is claimed whatever its holds, if it names the condemned container', async (s) => {
    const { fence } = await s.starting(s.a);
    await s.a.activate(s.activation(fence, true));
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, { kind: 'unsettled', container: C2 }))).toBe('refused');
    expect(await s.b.claim(ID, fence, { kind: 'unsettled', container: C1 })).toMatchObject({ container: C1 });
    expect(await s.record()).toMatchObject({ state: 'destroying', owner: 'host:b' });
    expect((await s.record()).fence).toBeGreaterThan(fence);
  });

  rule('[L-10] a verified record is never unsettled', async (s) => {
    const { fence } = await s.ready();
    expect(await s.expectUnchanged(() => s.b.claim(ID, fence, { kind: 'unsettled', container: C1 }))).toBe('refused');
  });

  rule('[T-02] a reap decided before an acquire, a keepalive or a takeover does nothing after it', async (s) => {
    const { fence } = await s.unheld(s.a);
    await s.b.keepalive(ID, fence);
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toBe('refused');
    await s.b.release(ID, fence);
    await s.take(s.b);
    const { fence: taken } = await s.record();
    await s.b.release(ID, taken);
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, idleNow))).toBe('refused');
    expect(await s.expectUnchanged(() => s.a.claim(ID, fence, capacity))).toBe('refused');
    await s.expire();
    await s.a.adopt({ id: ID, container: null });
    expect(await s.expectUnchanged(() => s.b.claim(ID, taken, idleNow))).toBe('refused');
  });
}
