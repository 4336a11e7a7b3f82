import { expect, test } from 'vitest';
import { asContainerId, asEngineMark, asLife, asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { decodeRecord, decodeValues, encodeRecord, RECORD_FIELDS } from '../../src/leases/record-fields.ts';
import { storeUnavailable } from '../../src/leases/refusals.ts';
import { ID, IDENTITY } from '../support/lease-harness.ts';

const HUGE = Number.MAX_SAFE_INTEGER as Fence;
const full: LeaseRecord = {
  ...{ v: 1, id: ID, state: 'ready', owner: asOwnerId('host:a'), fence: HUGE, since: 3 as Fence },
  ...{ container: asContainerId('c1'), engine: asEngineMark('e'), url: 'http://x', expiresAt: 11 },
  ...{ idleSince: 12, lastActiveAt: 13, life: asLife('l'), verified: true, spec: 's', createdAt: 14 },
  ...{ profile: IDENTITY.profile, userId: IDENTITY.userId, threadId: IDENTITY.threadId },
  holds: new Map([
    [0 as Fence, 20],
    [HUGE, 21],
  ]),
  previous: { endedAt: 1, reason: 'r', exitCode: 137, logTail: 'a "b"\n' },
};
const empty: LeaseRecord = {
  ...full,
  ...{ container: null, engine: null, url: null, verified: false, spec: null, previous: null, holds: new Map() },
  ...{ profile: null, userId: null, threadId: null },
};

test.for([full, empty])('[L-29] a record comes back from its fields as it was', (record) => {
  const fields = encodeRecord(record);
  expect(Object.keys(fields)).toEqual([...RECORD_FIELDS]);
  expect(decodeRecord(ID, fields)).toEqual(record);
  expect(decodeValues(ID, Object.values(fields))).toEqual(record);
});

test('[L-29] holds keep their order and every digit', () => {
  expect(encodeRecord(full).holds).toBe('0=20,9007199254740991=21');
});

test.for([
  ...[{ v: '' }, { v: 'x' }, { state: 'odd' }, { owner: '' }, { fence: '1.5' }, { since: '-1' }, { expiresAt: '' }],
  ...[
    { idleSince: 'x' },
    { lastActiveAt: '1e3' },
    { createdAt: '12345678901234567' },
    { holds: '1' },
    { holds: '1=2,' },
  ],
  ...RECORD_FIELDS.map((field) => ({ [field]: null })),
])('[L-28] what cannot be read is told as such: %o', (change) => {
  expect(decodeRecord(ID, { ...encodeRecord(full), ...change })).toMatchObject({ kind: 'unreadable', newer: false });
});

test('[L-27] a newer format is told as newer, before anything else is looked at', () => {
  expect(decodeRecord(ID, { v: '2' })).toMatchObject({ kind: 'unreadable', newer: true });
  expect(decodeValues(ID, [])).toMatchObject({ kind: 'unreadable', newer: false });
});

test.for(['x', '{}', '1', 'null', '{"endedAt":"1","reason":"r","exitCode":1,"logTail":""}'])(
  'a reason that is none tells nothing, and is no reason to call the record unreadable: %s',
  (previous) => {
    expect(decodeRecord(ID, { ...encodeRecord(full), previous })).toEqual({ ...full, previous: null });
  },
);

test.for([{ reason: 1 }, { logTail: null }, { exitCode: '1' }, { endedAt: null }])(
  'a reason with a wrong part is none: %o',
  (part) => {
    const previous = JSON.stringify({ ...full.previous, ...part });
    expect(decodeRecord(ID, { ...encodeRecord(full), previous })).toEqual({ ...full, previous: null });
  },
);

test('an end without an exit code is told', () => {
  const record = { ...full, previous: { endedAt: 1, reason: 'r', exitCode: null, logTail: '' } };
  expect(decodeRecord(ID, encodeRecord(record))).toEqual(record);
});

test('[L-22] a store that did not answer is told with its cause', () => {
  const cause = new Error('reset');
  expect(storeUnavailable(cause)).toMatchObject({ code: 'store_unavailable', cause });
  expect(storeUnavailable(cause).message).toContain('reset');
});
