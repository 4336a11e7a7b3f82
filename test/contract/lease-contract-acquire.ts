import { expect } from 'vitest';
import { type Fence, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { encodeRecord } from '../../src/leases/record-fields.ts';
import { C1, C2, ENGINE, expectAbout, ID, IDENTITY, otherIdentity, POLICY, URL1 } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function acquireContract(rule: Rule): void {
  const huge = (Number.MAX_SAFE_INTEGER - 1000) as Fence;

  rule('[L-01] take of an unknown id is a start without residue, under a lease of mine', async (s) => {
    const reply = await s.take();
    expect(reply).toMatchObject({ kind: 'starting', residue: null });
    const record = await s.record();
    expect(record).toMatchObject({ state: 'starting', owner: 'host:a', container: null, verified: false, ...wanted });
    expect(record.holds.size).toBe(0);
    expect(reply).toMatchObject({ record, fence: record.fence, life: record.life });
    expectAbout(record.expiresAt, (await s.now()) + POLICY.leaseMs);
  });

  rule('[L-01] a fence is the store clock in microseconds, or larger', async (s) => {
    const { fence } = await s.starting();
    expectAbout(fence / 1000, await s.now());
  });

  rule('[L-01] a fence exceeds the one that the caller knows', async (s) => {
    expect(await s.take(s.a, huge)).toMatchObject({ fence: huge + 1 });
  });

  rule('[L-01] a fence exceeds every one that the deployment ever gave, also for another sandbox', async (s) => {
    const other = otherIdentity('t2');
    await s.a.reassert({ ...s.found(), id: other.id, fence: huge });
    expect((await s.starting()).fence).toBe(huge + 2);
  });

  rule('[L-01] a fence exceeds that of the record, of a live tombstone and of one that counts no more', async (s) => {
    const states = ['ready', 'destroying', 'gone'] as const;
    for (const [n, state] of states.entries()) {
      const fence = (huge + 10 * n) as Fence;
      await s.harness.plant(ID, encodeRecord({ ...(await fresh(s)), state, container: C1, fence }));
      expect(await s.take()).toMatchObject({ record: { fence: fence + 1 } });
    }
    await s.harness.plant(ID, encodeRecord({ ...(await fresh(s)), state: 'gone', fence: (huge + 50) as Fence }));
    await s.expire();
    expect(await s.take()).toMatchObject({ record: { fence: huge + 51 } });
  });

  rule('[L-02] take of a ready record adds a hold and moves it from a live peer', async (s) => {
    const before = await s.ready(s.a);
    const reply = await s.take(s.b);
    const record = await s.record();
    expect(reply).toMatchObject({ kind: 'ready', record, hold: record.fence, heldBefore: true });
    expect(record).toMatchObject({
      state: 'ready',
      owner: 'host:b',
      container: C1,
      verified: true,
      since: before.since,
    });
    expect(record.fence).toBeGreaterThan(before.fence);
    expect([...record.holds.keys()]).toEqual([before.fence, record.fence]);
    expectAbout(record.holds.get(record.fence)!, (await s.now()) + POLICY.holdTtlMs);
  });

  rule('[L-02] the peer that had it is told `lost` by its next renewal', async (s) => {
    const { fence } = await s.ready(s.a);
    await s.take(s.b);
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'lost']]));
  });

  rule('[L-02] take extends the lease, and tells whether somebody held it before', async (s) => {
    await s.unheld();
    await s.expire();
    expect(await s.take()).toMatchObject({ heldBefore: false });
    expectAbout((await s.record()).expiresAt, (await s.now()) + POLICY.leaseMs);
    expect(await s.take()).toMatchObject({ heldBefore: true });
  });

  rule('[L-03] take of a live destroying record starts afresh; the old container is residue', async (s) => {
    const before = await s.destroying(s.a);
    const reply = await s.take(s.b);
    expect(reply).toMatchObject({ kind: 'starting', residue: C1, record: { owner: 'host:b', container: C1 } });
    expect((await s.record()).fence).toBeGreaterThan(before.fence);
  });

  rule('[L-03] take of an expired destroying record does the same', async (s) => {
    await s.destroying(s.a);
    await s.expire();
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting', residue: C1, record: { owner: 'host:b' } });
  });

  rule('[L-03] the destroyer is told `taken`, and its drop does nothing', async (s) => {
    const { fence } = await s.destroying(s.a);
    await s.take(s.b);
    const question = { kind: 'teardown', id: ID, fence, container: C1, engine: ENGINE } as const;
    await s.expectUnchanged(async () => {
      expect(await s.a.confirm(question)).toMatchObject({ answer: 'taken' });
      expect(await s.a.drop(ID, fence, null)).toBe('nothing');
    });
  });

  rule('[L-04] take of a live start of a peer is refused and changes nothing', async (s) => {
    await s.starting(s.a);
    const reply = await s.expectUnchanged(() => s.take(s.b));
    expect(reply).toMatchObject({ kind: 'wait', record: { owner: 'host:a', state: 'starting' } });
  });

  rule('[L-04] once that lease has expired, take succeeds; without a container there is no residue', async (s) => {
    const before = await s.starting(s.a);
    await s.expire();
    const reply = await s.take(s.b);
    expect(reply).toMatchObject({ kind: 'starting', residue: null, record: { owner: 'host:b' } });
    expect((await s.record()).fence).toBeGreaterThan(before.fence);
  });

  rule('[L-04] a container that the expired start names is residue', async (s) => {
    const { fence } = await s.starting(s.a);
    await s.a.residue(ID, fence, C2);
    await s.expire();
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting', residue: C2 });
  });

  rule('[L-04] my own live start is taken again under a new fence', async (s) => {
    const { fence } = await s.starting(s.a);
    expect((await s.starting(s.a)).fence).toBeGreaterThan(fence);
  });

  rule('[L-05] an identity whose id is another one is refused and changes nothing', async (s) => {
    await s.ready();
    const { identity } = otherIdentity('t2');
    const wrong = () => s.a.take({ id: ID, identity, spec: 'spec-1' });
    await s.expectUnchanged(() => expect(wrong()).rejects.toMatchObject({ code: 'identity_mismatch' }));
  });

  rule('[L-05] an identity other than the record’s is refused and changes nothing', async (s) => {
    for (const part of ['profile', 'userId', 'threadId'] as const) {
      await s.harness.plant(
        ID,
        encodeRecord({ ...(await fresh(s)), state: 'ready', container: C1, [part]: 'another' }),
      );
      await s.expectUnchanged(() => expect(s.take()).rejects.toMatchObject({ code: 'identity_mismatch' }));
    }
  });

  rule('[L-05] a record adopted without its identity takes the first one that hashes to its id', async (s) => {
    await s.a.adopt({ id: ID, container: { ...s.found(), profile: null, userId: null, threadId: null } });
    expect(await s.record()).toMatchObject({ profile: null, userId: null, threadId: null });
    expect(await s.take(s.b)).toMatchObject({ kind: 'ready', record: wanted });
    expect(await s.record()).toMatchObject(wanted);
  });

  rule('[L-06] activate makes my start ready, with my hold, verified', async (s) => {
    const { fence } = await s.starting();
    const reply = await s.a.activate({ ...s.activation(fence), holdMs: 60_000, createdAt: 1234 });
    const record = await s.record();
    expect(reply).toEqual(record);
    const made = { container: C1, engine: ENGINE, url: URL1, since: fence, createdAt: 1234 };
    expect(record).toMatchObject({ state: 'ready', owner: 'host:a', fence, verified: true, ...made, ...wanted });
    expect([...record.holds.keys()]).toEqual([fence]);
    expectAbout(record.holds.get(fence)!, (await s.now()) + 60_000);
  });

  rule('[L-06] a container that was found gets an unknown hold as well, and stays unverified', async (s) => {
    const { fence } = await s.starting();
    await s.a.activate({ ...s.activation(fence, true), since: 7 as Fence });
    const record = await s.record();
    expect(record).toMatchObject({ state: 'ready', verified: false, since: 7 });
    expect([...record.holds.keys()].sort()).toEqual([UNKNOWN_HOLD, fence]);
    expectAbout(record.holds.get(UNKNOWN_HOLD)!, (await s.now()) + POLICY.holdTtlMs);
  });

  rule('[L-06] activate without a record is refused and writes nothing', async (s) => {
    expect(await s.expectUnchanged(() => s.a.activate(s.activation(5 as Fence)))).toBe('moved');
  });

  rule('[L-06] activate with another fence, by another owner, or of another state is refused', async (s) => {
    const { fence } = await s.starting();
    await s.expectUnchanged(async () => {
      expect(await s.a.activate(s.activation((fence - 1) as Fence))).toBe('moved');
      expect(await s.a.activate(s.activation((fence + 1) as Fence))).toBe('moved');
      expect(await s.b.activate(s.activation(fence))).toBe('moved');
    });
    await s.a.activate(s.activation(fence));
    expect(await s.expectUnchanged(() => s.a.activate(s.activation(fence, false, C2)))).toBe('moved');
  });

  rule('[L-06] verify notes that the named container is fit, and where it answers; of no other', async (s) => {
    const { fence } = await s.starting();
    await s.a.activate(s.activation(fence, true));
    expect(await s.expectUnchanged(() => s.b.verify(ID, C2, 'http://x'))).toBe('moved');
    const reply = await s.b.verify(ID, C1, 'http://x');
    expect(reply).toEqual(await s.record());
    expect(reply).toMatchObject({ state: 'ready', owner: 'host:a', fence, verified: true, url: 'http://x' });
  });

  rule('[L-06] verify of a record that is not ready is refused', async (s) => {
    const { fence } = await s.starting();
    await s.a.residue(ID, fence, C1);
    expect(await s.expectUnchanged(() => s.a.verify(ID, C1, URL1))).toBe('moved');
  });
}

const wanted = { profile: IDENTITY.profile, userId: IDENTITY.userId, threadId: IDENTITY.threadId, spec: 'spec-1' };

/** A plain record of A's, of the present life. */
async function fresh(s: Parameters<Parameters<Rule>[1]>[0]) {
  const other = otherIdentity('t-fresh');
  await s.a.take({ ...other, spec: 'spec-1' });
  return { ...(await s.record(other.id)), id: ID, threadId: IDENTITY.threadId };
}
