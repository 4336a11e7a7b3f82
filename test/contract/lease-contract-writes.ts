import { expect } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { C1, C2, ENGINE, expectAbout, ID, IDENTITY, POLICY, type Scene, URL1 } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

const MINUTE = 60_000;
const why = { endedAt: 5, reason: 'oom', exitCode: 137, logTail: 'x' };
const { profile, userId, threadId } = IDENTITY;

/** What each transition makes of a record, down to its last field. Everything before it happened a minute earlier. */
export function writesContract(rule: Rule): void {
  rule('[L-01] the whole record that take makes of nothing', async (s) => {
    await s.take();
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'starting', owner: 'host:a', container: null, engine: null, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-1', previous: null },
      ...{ lease: 'new', holds: [], idle: 'new', active: 'new', created: 'new', since: 'fence' },
    });
  });

  rule('[L-02] the whole record that take makes of a ready one', async (s) => {
    const before = await s.ready();
    await s.expire(MINUTE);
    await s.take(s.b);
    const { fence } = await s.record();
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'ready', owner: 'host:b', container: C1, engine: ENGINE, url: URL1 },
      ...{ verified: true, profile, userId, threadId, spec: 'spec-1', previous: null },
      ...{
        lease: 'new',
        holds: [before.fence, fence],
        idle: 'old',
        active: 'new',
        created: 'old',
        since: before.since,
      },
    });
  });

  rule('[L-06] the whole record that activate makes of a start', async (s) => {
    const { fence } = await s.starting();
    await s.expire(MINUTE);
    await s.a.activate({ ...s.activation(fence), spec: 'spec-2' });
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'ready', owner: 'host:a', container: C1, engine: ENGINE, url: URL1 },
      ...{ verified: true, profile, userId, threadId, spec: 'spec-2', previous: null },
      ...{ lease: 'new', holds: [fence], idle: 'new', active: 'new', created: 'old', since: 'fence' },
    });
  });

  rule('[L-07] the whole record that restart makes of a ready one', async (s) => {
    await s.ready();
    await s.expire(MINUTE);
    await s.b.restart(ID, C1, why);
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'starting', owner: 'host:b', container: C1, engine: ENGINE, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-1', previous: why },
      ...{ lease: 'new', holds: [], idle: 'new', active: 'new', created: 'new', since: 'fence' },
    });
  });

  rule('[L-03] the whole record that take makes of a removal', async (s) => {
    await s.destroying();
    await s.expire(MINUTE);
    await s.b.take({ id: ID, identity: IDENTITY, spec: 'spec-2' });
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'starting', owner: 'host:b', container: C1, engine: ENGINE, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-2', previous: null },
      ...{ lease: 'new', holds: [], idle: 'new', active: 'new', created: 'new', since: 'fence' },
    });
  });

  rule('[L-08] the whole record after the last release', async (s) => {
    const { fence } = await s.ready();
    await s.expire(MINUTE);
    await s.a.release(ID, fence);
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'ready', owner: 'host:a', container: C1, engine: ENGINE, url: URL1 },
      ...{ verified: true, profile, userId, threadId, spec: 'spec-1', previous: null },
      ...{ lease: 'old', holds: [], idle: 'new', active: 'new', created: 'old', since: 'fence' },
    });
  });

  rule('[L-10] the whole record that an explicit destroy makes of a held one', async (s) => {
    const before = await s.ready();
    await s.expire(MINUTE);
    await s.b.condemnByIntent(ID, C1);
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'destroying', owner: 'host:b', container: C1, engine: ENGINE, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-1', previous: null },
      ...{ lease: 'new', holds: [], idle: 'old', active: 'old', created: 'old', since: before.since },
    });
  });

  rule('[L-15] the whole tombstone that drop makes of a removal', async (s) => {
    const { fence, since } = await s.destroying();
    await s.expire(MINUTE);
    await s.a.drop(ID, fence, why);
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'gone', owner: 'host:a', container: null, engine: null, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-1', previous: why },
      ...{ lease: 'new', holds: [], idle: 'old', active: 'old', created: 'old', since },
    });
  });

  rule('[L-30] the whole tombstone that end makes of a ready record', async (s) => {
    const { since } = await s.ready();
    await s.expire(MINUTE);
    await s.a.end(ID, C1, why);
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'gone', owner: 'host:a', container: null, engine: null, url: null },
      ...{ verified: false, profile, userId, threadId, spec: 'spec-1', previous: why },
      ...{ lease: 'new', holds: [], idle: 'old', active: 'old', created: 'old', since },
    });
  });

  rule('[L-12] the whole marker that confirm writes again', async (s) => {
    await s.a.confirm({ kind: 'teardown', id: ID, fence: 77 as Fence, container: C2, engine: ENGINE });
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'destroying', owner: 'host:a', container: C2, engine: ENGINE, url: null },
      ...{ verified: false, profile: null, userId: null, threadId: null, spec: null, previous: null },
      ...{ lease: 'new', holds: [], idle: 'new', active: 'new', created: 'new', since: 'fence' },
    });
  });

  rule('[L-09] the whole record that adopt makes of a container of which little is known', async (s) => {
    const unknown = { profile: null, userId: null, threadId: null, spec: null, url: null, createdAt: null };
    await s.a.adopt({ id: ID, container: { ...s.found(), ...unknown } });
    await expectRecord(s, {
      ...{ v: 1, id: ID, state: 'ready', owner: 'host:a', container: C1, engine: ENGINE, url: null },
      ...{ verified: false, profile: null, userId: null, threadId: null, spec: null, previous: null },
      ...{ lease: 'new', holds: [0], idle: 'new', active: 'new', created: 'new', since: 0 },
    });
  });
}

type Age = 'new' | 'old';
type Wanted = Omit<
  LeaseRecord,
  'owner' | 'fence' | 'since' | 'life' | 'expiresAt' | 'holds' | 'idleSince' | 'lastActiveAt' | 'createdAt'
> & {
  readonly owner: string;
  readonly since: number | 'fence';
  readonly holds: readonly number[];
  readonly lease: Age;
  readonly idle: Age;
  readonly active: Age;
  readonly created: Age;
};

async function expectRecord(
  s: Scene,
  { holds, since, lease, idle, active, created, ...fields }: Wanted,
): Promise<void> {
  const { fence, life, expiresAt, idleSince, lastActiveAt, createdAt, ...record } = await s.record();
  const now = await s.now();
  const moment = (age: Age): number => (age === 'new' ? now : now - MINUTE);
  expect(record).toEqual({ ...fields, since: since === 'fence' ? fence : since, holds: expect.any(Map) });
  expect([...record.holds.keys()]).toEqual(holds);
  expectAbout(expiresAt, moment(lease) + POLICY.leaseMs);
  expectAbout(idleSince, moment(idle));
  expectAbout(lastActiveAt, moment(active));
  expectAbout(createdAt, moment(created));
  expect(life).not.toBe('');
}
