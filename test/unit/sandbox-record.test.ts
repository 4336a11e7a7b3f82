import { expect, test } from 'vitest';
import { asContainerId, asLife, asOwnerId, type Fence, type HoldId, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import {
  countHolds,
  intoLife,
  isAbsent,
  isExpired,
  type LeaseRecord,
  MAX_HOLDS,
  shownState,
  unheldSince,
  withHold,
  withoutExpiredHolds,
} from '../../src/domain/sandbox.ts';
import { ID, IDENTITY } from '../support/lease-harness.ts';

const NOW = 1_000_000;
const holdsOf = (...entries: readonly (readonly [hold: number, until: number])[]): ReadonlyMap<HoldId, number> =>
  new Map(entries.map(([hold, until]) => [hold as HoldId, until]));

function record(changes: Partial<LeaseRecord> = {}): LeaseRecord {
  const { profile, userId, threadId } = IDENTITY;
  return {
    ...{ v: 1, id: ID, state: 'ready', owner: asOwnerId('a'), fence: 5 as Fence, since: 5 as Fence },
    ...{ container: asContainerId('c1'), engine: null, url: 'http://x', expiresAt: NOW + 100, holds: new Map() },
    ...{ idleSince: NOW - 50, lastActiveAt: NOW - 50, life: asLife('life-1'), verified: true },
    ...{ profile, userId, threadId, spec: null, createdAt: NOW - 100, previous: null },
    ...changes,
  };
}

test('a lease has expired from its end on', () => {
  expect(isExpired(record({ expiresAt: NOW + 1 }), NOW)).toBe(false);
  expect(isExpired(record({ expiresAt: NOW }), NOW)).toBe(true);
});

test('only a tombstone that has stood for its lease is absent', () => {
  expect(isAbsent(null, NOW)).toBe(true);
  expect(isAbsent(record({ state: 'gone', expiresAt: NOW }), NOW)).toBe(true);
  expect(isAbsent(record({ state: 'gone', expiresAt: NOW + 1 }), NOW)).toBe(false);
  expect(isAbsent(record({ expiresAt: NOW }), NOW)).toBe(false);
});

test('a hold counts until its end, not at it', () => {
  const held = record({ holds: holdsOf([1, NOW], [2, NOW + 1], [UNKNOWN_HOLD, NOW + 2]) });
  expect(countHolds(held, NOW)).toBe(2);
  expect(countHolds(held, NOW + 2)).toBe(0);
});

test('unheld since the end of the last hold, or since the last release if that was later', () => {
  expect(unheldSince(record({ holds: holdsOf([1, NOW + 1]) }), NOW)).toBeNull();
  expect(unheldSince(record({ holds: holdsOf([1, NOW], [2, NOW - 10]) }), NOW)).toBe(NOW);
  expect(unheldSince(record({ holds: holdsOf([1, NOW - 60]) }), NOW)).toBe(NOW - 50);
  expect(unheldSince(record(), NOW)).toBe(NOW - 50);
});

test('shown: active while a hold counts, else warm; a tombstone is not shown', () => {
  expect(shownState(record({ holds: holdsOf([1, NOW + 1]) }), NOW)).toBe('active');
  expect(shownState(record({ holds: holdsOf([1, NOW]) }), NOW)).toBe('warm');
  expect(shownState(record({ state: 'gone' }), NOW)).toBeNull();
  for (const state of ['starting', 'destroying'] as const) expect(shownState(record({ state }), NOW)).toBe(state);
});

test('holds that ran out leave the end of the last one as the beginning of the idle time', () => {
  const before = record({ holds: holdsOf([1, NOW - 20], [2, NOW], [3, NOW + 1]) });
  const after = withoutExpiredHolds(before, NOW);
  expect([...after.holds]).toEqual([[3, NOW + 1]]);
  expect(after.idleSince).toBe(NOW);
  expect(withoutExpiredHolds(record({ holds: holdsOf([1, NOW - 60]) }), NOW).idleSince).toBe(NOW - 50);
  expect(withoutExpiredHolds(after, NOW)).toBe(after);
});

test('[L-26] a hold is added, or renewed in its place', () => {
  const before = record({ holds: holdsOf([1, NOW + 10], [2, NOW + 20], [3, NOW]) });
  expect([...withHold(before, 4 as HoldId, NOW + 5, NOW).holds.keys()]).toEqual([1, 2, 4]);
  expect([...withHold(before, 1 as HoldId, NOW + 50, NOW).holds]).toEqual([
    [1, NOW + 50],
    [2, NOW + 20],
  ]);
});

test('[L-26] of too many the first to run out goes, of equals the oldest, never the new one', () => {
  const full = (untilOf: (n: number) => number) =>
    record({ holds: holdsOf(...Array.from({ length: MAX_HOLDS }, (_, n) => [n + 10, untilOf(n)] as const)) });
  const goneOf = (before: LeaseRecord): readonly number[] => {
    const after = withHold(before, 1 as HoldId, NOW + 1, NOW);
    expect(after.holds.size).toBe(MAX_HOLDS);
    expect(after.holds.has(1 as HoldId)).toBe(true);
    return [...before.holds.keys()].filter((hold) => !after.holds.has(hold));
  };
  expect(goneOf(full((n) => NOW + 1_000 - n))).toEqual([10 + MAX_HOLDS - 1]);
  expect(goneOf(full((n) => NOW + 1_000 + n))).toEqual([10]);
  expect(goneOf(full(() => NOW + 1_000))).toEqual([10]);
  const backwards = full(() => NOW + 1_000);
  expect(goneOf({ ...backwards, holds: new Map([...backwards.holds].reverse()) })).toEqual([10]);
  const falling = full((n) => NOW + 1_000 - n);
  expect(goneOf({ ...falling, holds: new Map([...falling.holds].reverse()) })).toEqual([10 + MAX_HOLDS - 1]);
  const roomy = withHold(
    full((n) => NOW + n),
    1 as HoldId,
    NOW + 1,
    NOW,
  ); // one had run out
  expect(roomy.holds.size).toBe(MAX_HOLDS);
  expect(roomy.holds.has(11 as HoldId)).toBe(true);
});

test('[L-25] a record of this life is left as it is, one of another is not trusted', () => {
  const mine = record();
  expect(intoLife(mine, asLife('life-1'), NOW, 900)).toBe(mine);
  const brought = intoLife(mine, asLife('life-2'), NOW, 900);
  expect(brought).toMatchObject({ life: 'life-2', verified: false, state: 'ready' });
  expect([...brought.holds]).toEqual([[UNKNOWN_HOLD, NOW + 900]]);
  expect(intoLife(record({ state: 'destroying' }), asLife('life-2'), NOW, 900).holds.size).toBe(0);
});
