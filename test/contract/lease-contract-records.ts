import { expect } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { encodeRecord, type RecordFields } from '../../src/leases/record-fields.ts';
import { C1, ENGINE, ID, otherIdentity, type Scene } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function recordsContract(rule: Rule): void {
  const corrupt: readonly Partial<RecordFields>[] = [
    { state: 'undead' },
    { v: '' },
    { fence: 'NaN' },
    { fence: '1.7e+15' },
    { expiresAt: '' },
    { holds: '5:6' },
    { owner: '' },
  ];

  for (const fields of corrupt) {
    rule(`[L-28] a record with ${JSON.stringify(fields)} is an error to everybody, and stays as it is`, async (s) => {
      await plantBroken(s, fields);
      await s.expectUnchanged(() => expectRefusedByAll(s));
      expect(await s.a.read(ID)).toMatchObject({ kind: 'unreadable', id: ID, reason: expect.any(String) });
    });
  }

  rule('[L-28] a record without most of its fields is an error, not an absence', async (s) => {
    await s.harness.plant(ID, { v: '1', state: 'ready' });
    await s.expectUnchanged(() => expectRefusedByAll(s));
  });

  rule('[L-28] it stops no batch: it is reported for its id alone', async (s) => {
    await plantBroken(s, { state: 'undead' });
    const other = otherIdentity('t2');
    const reply = await s.a.take({ ...other, spec: 'spec-1' });
    const { fence } = reply as { fence: Fence };
    const leases = [ID, other.id].map((id) => ({ id, fence }));
    expect(await s.a.renew(leases)).toEqual(
      new Map([
        [ID, 'unreadable'],
        [other.id, 'renewed'],
      ]),
    );
    expect((await s.a.readMany([ID, other.id])).map(({ kind }) => kind)).toEqual(['unreadable', 'record']);
    const { items } = await s.a.page(null, 10);
    expect(items.map(({ kind }) => kind).sort()).toEqual(['record', 'unreadable']);
    await s.a.handover([ID, other.id]);
    expect(await s.b.take({ ...other, spec: 'spec-1' })).toMatchObject({ kind: 'starting' });
  });

  rule('[L-28] an explicit destroy clears it, whatever is wrong with it: what was found is removed', async (s) => {
    for (const fields of corrupt) {
      await s.harness.plant(ID, { ...encodeRecord(await fresh(s)), ...fields });
      expect(await s.b.condemnByIntent(ID, C1)).toMatchObject({ id: ID, container: C1 });
      expect(await s.record()).toMatchObject({ state: 'destroying', owner: 'host:b', container: C1 });
    }
  });

  rule('[L-28] an explicit destroy clears it where no container is', async (s) => {
    await plantBroken(s, { state: 'undead' });
    expect(await s.b.condemnByIntent(ID, null)).toBe('nothing');
    expect(await s.state()).toBe('absent');
    expect(await s.take()).toMatchObject({ kind: 'starting' });
  });

  rule('[L-27] a record of a newer format is left alone by every operation, with a clear error', async (s) => {
    await plantBroken(s, { v: '2' });
    await s.expectUnchanged(async () => {
      await expectRefusedByAll(s);
      await expect(s.a.condemnByIntent(ID, C1)).rejects.toMatchObject({ code: 'record_unreadable' });
      await expect(s.a.condemnByIntent(ID, null)).rejects.toThrow(/newer/);
      await s.a.handover([ID]);
    });
    expect(await s.a.read(ID)).toMatchObject({ kind: 'unreadable' });
  });

  rule('[L-27] a newer format need not have the fields of this one', async (s) => {
    await s.harness.plant(ID, { v: '17' });
    await s.expectUnchanged(() => expect(s.take()).rejects.toThrow(/newer/));
  });

  rule('[L-29] fences are exact to the last digit, whatever writes or compares them', async (s) => {
    const odd = 9_007_199_254_740_001 as Fence;
    for (const known of [odd, odd + 2, odd + 4] as Fence[]) {
      const reply = await s.take(s.a, known);
      expect(reply).toMatchObject({ kind: 'starting', fence: known + 1 });
      expect((await s.record()).fence).toBe(known + 1);
    }
    const { fence } = await s.record();
    expect(fence).toBe(odd + 5);
    expect(await s.a.activate(s.activation((fence - 1) as Fence))).toBe('moved');
    await s.a.activate({ ...s.activation(fence), since: (odd - 1) as Fence });
    expect(await s.record()).toMatchObject({ fence, since: odd - 1 });
    expect([...(await s.record()).holds.keys()]).toEqual([fence]);
    expect(await s.a.keepalive(ID, (odd - 2) as Fence)).toBe('hold_lost');
    expect(await s.a.keepalive(ID, (odd - 1) as Fence)).toMatchObject({ fence });
    expect(await s.a.renew([{ id: ID, fence: (fence + 1) as Fence }])).toEqual(new Map([[ID, 'lapsed']]));
    expect(await s.a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'renewed']]));
    expect(await s.take(s.b)).toMatchObject({ hold: fence + 1 });
  });

  rule('[L-29] text comes back as it went in', async (s) => {
    const userId = 'u,=\u00e9"\\ \u{1f600}{}';
    const other = otherIdentity('line', userId);
    await s.a.take({ ...other, spec: 's' });
    expect(await s.record(other.id)).toMatchObject({ userId, threadId: 'line' });
  });
}

async function fresh(s: Scene): Promise<LeaseRecord> {
  const other = otherIdentity('t-fresh');
  await s.a.take({ ...other, spec: 'spec-1' });
  return s.record(other.id);
}

async function plantBroken(s: Scene, fields: Partial<RecordFields>): Promise<void> {
  await s.ready();
  await s.harness.plant(ID, { ...encodeRecord(await s.record()), ...fields });
}

/** Everything that acts on one record, save an explicit destroy. */
async function expectRefusedByAll(s: Scene): Promise<void> {
  const { a } = s;
  const fence = 5 as Fence;
  const why = { endedAt: 1, reason: 'x', exitCode: 0, logTail: '' };
  const found = { container: C1, engine: ENGINE, url: null, since: fence, profile: null, userId: null, threadId: null };
  const about = { ...found, spec: null, createdAt: null };
  const calls: Record<string, () => Promise<unknown>> = {
    take: () => s.take(),
    activate: () => a.activate({ id: ID, fence, ...about, url: 'http://x', found: true, holdMs: 1 }),
    verify: () => a.verify(ID, C1, 'http://x'),
    restart: () => a.restart(ID, C1, null),
    residue: () => a.residue(ID, fence, C1),
    keepalive: () => a.keepalive(ID, fence),
    release: () => a.release(ID, fence),
    adopt: () => a.adopt({ id: ID, container: about }),
    claim: () => a.claim(ID, fence, { kind: 'capacity' }),
    confirm: () => a.confirm({ kind: 'teardown', id: ID, fence, container: C1, engine: ENGINE }),
    drop: () => a.drop(ID, fence, null),
    end: () => a.end(ID, C1, why),
    reassert: () => a.reassert({ id: ID, fence, ...about }),
    claimSpare: () => a.claimSpare(ID, fence, 'default', 'spec-1'),
  };
  for (const [name, call] of Object.entries(calls)) {
    await expect(call(), name).rejects.toMatchObject({ code: 'record_unreadable' });
  }
  expect(await a.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'unreadable']]));
}
