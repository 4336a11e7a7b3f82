import { expect } from 'vitest';
import { type Fence, NO_FENCE, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { C1, C2, ENGINE, expectAbout, ID, IDENTITY, otherIdentity, POLICY, URL1 } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function ownerContract(rule: Rule): void {
  const { profile, userId, threadId } = IDENTITY;
  const about = { container: C1, engine: ENGINE, url: URL1, profile, userId, threadId, spec: 'spec-1' };

  rule('[L-09] adopt is refused against every live lease, ready or not, a peer’s or mine', async (s) => {
    const { fence } = await s.starting(s.a);
    expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: s.found() }))).toBe('refused');
    await s.a.activate(s.activation(fence));
    expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: s.found() }))).toBe('refused');
    expect(await s.expectUnchanged(() => s.a.adopt({ id: ID, container: s.found() }))).toBe('refused');
  });

  rule('[L-09] adopt of an expired record changes its owner and its lease, nothing else', async (s) => {
    await s.ready(s.a);
    await s.take(s.a);
    await s.expire();
    const before = await s.record();
    const reply = await s.b.adopt({ id: ID, container: s.found(C2) });
    const record = await s.record();
    expect(reply).toEqual(record);
    expect(record).toEqual({ ...before, owner: 'host:b', expiresAt: record.expiresAt });
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-09] adopt of an expired record needs no container', async (s) => {
    await s.ready(s.a);
    await s.expire();
    expect(await s.b.adopt({ id: ID, container: null })).toMatchObject({ owner: 'host:b' });
  });

  rule(
    '[L-09] an expired removal is not adopted, and an expired start only with what runs under its name',
    async (s) => {
      const { fence } = await s.starting(s.a);
      expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: s.found() }))).toBe('refused');
      await s.expire();
      expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: null }))).toBe('refused');
      await s.b.claim(ID, fence, { kind: 'expired', container: C1 });
      await s.expire();
      expect(await s.expectUnchanged(() => s.a.adopt({ id: ID, container: s.found() }))).toBe('refused');
    },
  );

  rule(
    '[L-09] a container that runs under the name of an expired start becomes ready, under an unknown hold',
    async (s) => {
      const { fence } = await s.starting(s.a);
      const before = await s.record();
      await s.expire();
      const nameless = { ...s.found(), profile: null, userId: null, threadId: null };
      const reply = await s.b.adopt({ id: ID, container: nameless });
      const record = await s.record();
      expect(reply).toEqual(record);
      const { profile, userId, threadId } = before;
      expect(record).toMatchObject({
        state: 'ready',
        owner: 'host:b',
        verified: false,
        container: C1,
        profile,
        userId,
        threadId,
      });
      expect(record.fence).toBeGreaterThan(fence);
      expect([...record.holds.keys()]).toEqual([UNKNOWN_HOLD]);
      expect(await s.a.activate(s.activation(fence))).toBe('moved');
    },
  );

  rule('[L-13] my own start of what I remember ready has lapsed, and is written again', async (s) => {
    const { fence } = await s.starting(s.a);
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    expect(await s.a.renew([{ id: ID, fence, ready: true }])).toEqual(new Map([[ID, 'lapsed']]));
    expect(await s.b.renew([{ id: ID, fence, ready: true }])).toEqual(new Map([[ID, 'lost']]));
    expect(await s.expectUnchanged(() => s.b.reassert({ id: ID, fence, ...s.found() }))).toBe('refused');
    const written = await s.a.reassert({ id: ID, fence, ...s.found() });
    expect(written).toMatchObject({ state: 'ready', owner: 'host:a', verified: false });
    expect([...(await s.record()).holds.keys()]).toEqual([UNKNOWN_HOLD]);
  });

  rule('[L-14] a ready record of the fence I remember is left alone', async (s) => {
    const { fence } = await s.ready(s.a);
    expect(await s.a.renew([{ id: ID, fence, ready: true }])).toEqual(new Map([[ID, 'renewed']]));
    expect(await s.expectUnchanged(() => s.a.reassert({ id: ID, fence, ...s.found() }))).toBe('refused');
  });

  rule('[L-09] a missing record becomes ready, unverified, with an unknown hold', async (s) => {
    const reply = await s.b.adopt({ id: ID, container: { ...s.found(), since: 9 as Fence } });
    const record = await s.record();
    expect(reply).toEqual(record);
    expect(record).toMatchObject({ state: 'ready', owner: 'host:b', verified: false, since: 9, ...about });
    expect(record.createdAt).toBe(s.found().createdAt);
    expect([...record.holds.keys()]).toEqual([UNKNOWN_HOLD]);
    expectAbout(record.holds.get(UNKNOWN_HOLD)!, (await s.now()) + POLICY.holdTtlMs);
  });

  rule('[L-09] the fence of a missing record exceeds its container’s label', async (s) => {
    const since = (Number.MAX_SAFE_INTEGER - 10) as Fence;
    expect(await s.b.adopt({ id: ID, container: { ...s.found(), since } })).toMatchObject({ fence: since + 1 });
  });

  rule('[L-09] without record and container there is nothing to adopt', async (s) => {
    expect(await s.expectUnchanged(() => s.b.adopt({ id: ID, container: null }))).toBe('refused');
  });

  rule('[L-13] renew extends my start and my ready record', async (s) => {
    const { fence } = await s.starting();
    await s.expire(20_000);
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    expectAbout((await s.record()).expiresAt, (await s.now()) + POLICY.leaseMs);
    await s.a.activate(s.activation(fence));
    await s.expire(40_000);
    const before = await s.record();
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    const record = await s.record();
    expect(record).toEqual({ ...before, expiresAt: record.expiresAt });
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-13] lapsed: no record, or an older fence than mine', async (s) => {
    expect(await s.expectUnchanged(() => s.a.renew([{ id: ID, fence: 5 as Fence }]))).toEqual(
      new Map([[ID, 'lapsed']]),
    );
    const { fence } = await s.ready(s.b);
    const newer = [{ id: ID, fence: (fence + 1) as Fence }];
    expect(await s.expectUnchanged(() => s.a.renew(newer))).toEqual(new Map([[ID, 'lapsed']]));
  });

  rule('[L-13] lost: a peer’s, also an expired one; it never takes again', async (s) => {
    const { fence } = await s.ready(s.b);
    expect(await s.expectUnchanged(() => s.a.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'lost']]));
    await s.expire();
    expect(await s.expectUnchanged(() => s.a.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'lost']]));
  });

  rule('[L-13] lost: mine under a later fence', async (s) => {
    const { fence } = await s.ready(s.a);
    await s.take(s.a);
    expect(await s.expectUnchanged(() => s.a.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'lost']]));
  });

  rule('[L-13] renew never extends a removal', async (s) => {
    const { fence } = await s.destroying();
    expect(await s.expectUnchanged(() => s.a.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'lost']]));
  });

  rule('[L-13] one call carries hundreds of ids, each with an answer of its own', async (s) => {
    const leases = [];
    for (let n = 0; n < 200; n += 1) {
      const other = otherIdentity(`t${n}`);
      const store = n % 2 === 0 ? s.a : s.b;
      const reply = await store.take({ ...other, spec: 'spec-1' });
      if (reply.kind === 'starting') leases.push({ id: other.id, fence: reply.fence });
    }
    const replies = await s.a.renew([...leases.slice(0, 199), { id: ID, fence: 1 as Fence }]);
    expect(replies.size).toBe(200);
    expect(leases.slice(0, 199).map(({ id }) => replies.get(id))).toEqual(
      Array.from({ length: 199 }, (_, n) => (n % 2 === 0 ? 'renewed' : 'lost')),
    );
    expect(replies.get(ID)).toBe('lapsed');
  });

  rule('[L-14] reassert writes a missing record: new fence, unknown hold, not verified', async (s) => {
    const fence = (Number.MAX_SAFE_INTEGER - 10) as Fence;
    const reply = await s.a.reassert({ ...s.found(), id: ID, fence, since: 3 as Fence });
    const record = await s.record();
    expect(reply).toEqual(record);
    const written = { state: 'ready', owner: 'host:a', fence: fence + 1, since: 3, verified: false };
    expect(record).toMatchObject({ ...about, ...written });
    expect([...record.holds.keys()]).toEqual([UNKNOWN_HOLD]);
  });

  rule('[L-14] reassert overwrites an older record, whoever wrote it', async (s) => {
    const { fence } = await s.ready(s.b);
    const reply = await s.a.reassert({ ...s.found(C2), id: ID, fence: (fence + 1) as Fence });
    expect(reply).toMatchObject({ owner: 'host:a', container: C2, verified: false });
    expect((await s.record()).fence).toBeGreaterThan(fence + 1);
    expect([...(await s.record()).holds.keys()]).toEqual([UNKNOWN_HOLD]);
  });

  rule('[L-14] reassert leaves a record of the same or of a later fence alone', async (s) => {
    const { fence } = await s.ready(s.b);
    for (const remembered of [fence, fence - 1] as Fence[]) {
      const late = { ...s.found(C2), id: ID, fence: remembered };
      expect(await s.expectUnchanged(() => s.a.reassert(late))).toBe('refused');
      expect(await s.expectUnchanged(() => s.b.reassert(late))).toBe('refused');
    }
  });

  rule('[L-16] after a handover a peer adopts at once, holds and idle clock as they were', async (s) => {
    await s.ready(s.a);
    const before = await s.record();
    await s.a.handover([ID, otherIdentity('t2').id]);
    expect(await s.b.adopt({ id: ID, container: null })).toMatchObject({ owner: 'host:b', fence: before.fence });
    const record = await s.record();
    expect(record).toEqual({ ...before, owner: 'host:b', expiresAt: record.expiresAt });
  });

  rule('[L-16] after a handover a peer takes a start over at once', async (s) => {
    await s.starting(s.a);
    await s.a.handover([ID]);
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting', record: { owner: 'host:b' } });
  });

  rule('[L-16] after a handover a peer finishes a removal at once', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.a.handover([ID]);
    expect(await s.b.claim(ID, fence, { kind: 'expired', container: null })).toMatchObject({ container: C1 });
  });

  rule('[L-16] a handover touches no peer’s lease and no tombstone', async (s) => {
    await s.ready(s.b);
    await s.expectUnchanged(() => s.a.handover([ID]));
    const { fence } = await s.record();
    await s.b.release(ID, fence);
    await s.b.claim(ID, fence, { kind: 'idle', unheldMs: 0 });
    await s.b.drop(ID, fence, null);
    await s.expectUnchanged(() => s.b.handover([ID]));
  });

  rule('[L-09] since of an unlabelled container is no fence', async (s) => {
    expect(await s.a.adopt({ id: ID, container: s.found() })).toMatchObject({ since: NO_FENCE });
  });
}
