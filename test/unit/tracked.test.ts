import { expect, test } from 'vitest';
import { type ContainerId, type Fence, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { TrackedLeases } from '../../src/lifecycle/tracked.ts';
import { C1, C2, ID, otherIdentity } from '../support/lease-harness.ts';

const LEASE_MS = 30_000;
const OTHER = otherIdentity('t2').id;

function record(fence: number, container: ContainerId | null = C1, id = ID): LeaseRecord {
  const base: Partial<LeaseRecord> = { id, state: 'ready', fence: fence as Fence, container, since: UNKNOWN_HOLD };
  return base as LeaseRecord;
}

test('[T-08] a lease may be acted on until it is as old as it lasts, counted from the sending', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  tracked.remember(record(5), 1_000, true);
  expect(tracked.current(ID, 1_000 + LEASE_MS - 1)?.record.fence).toBe(5);
  expect(tracked.current(ID, 1_000 + LEASE_MS)).toBeNull();
  expect(tracked.all(1_000 + LEASE_MS - 1)).toHaveLength(1);
  expect(tracked.size).toBe(1);
  expect(tracked.all(1_000 + LEASE_MS)).toEqual([]);
  expect(tracked.size).toBe(0);
  expect(tracked.current(OTHER, 0)).toBeNull();
});

test('[T-08] a renewal counts from its sending and never backwards, for this fence only', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  tracked.remember(record(5), 1_000, false);
  tracked.renewed(ID, 5 as Fence, 2_000);
  tracked.renewed(ID, 5 as Fence, 1_500);
  expect(tracked.current(ID, 2_000)).toMatchObject({ confirmedAt: 2_000, handedOut: false });
  tracked.renewed(ID, 4 as Fence, 9_000);
  tracked.renewed(OTHER, 5 as Fence, 9_000);
  expect(tracked.current(ID, 2_000)?.confirmedAt).toBe(2_000);
  expect(tracked.size).toBe(1);
});

test('[T-05] only this very lease is forgotten', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  tracked.remember(record(5), 0, true);
  expect(tracked.forget(ID, 4 as Fence)).toBe(false);
  expect(tracked.forget(OTHER, 5 as Fence)).toBe(false);
  expect(tracked.current(ID, 0)).not.toBeNull();
  expect(tracked.forget(ID, 5 as Fence)).toBe(true);
  expect(tracked.forget(ID, 5 as Fence)).toBe(false);
  expect(tracked.size).toBe(0);
});

test('a reply that comes late does not replace a later lease; one of the same fence does', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  tracked.remember(record(5), 2_000, false);
  tracked.remember(record(4, C2), 1_000, true);
  expect(tracked.current(ID, 2_000)).toMatchObject({ record: { fence: 5, container: C1 }, handedOut: false });
  tracked.remember(record(5, C2), 3_000, false);
  expect(tracked.current(ID, 3_000)).toMatchObject({ record: { container: C2 }, confirmedAt: 3_000 });
});

test('[S-02] what was handed out stays so for its container, and for no other', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  const isHandedOut = () => tracked.current(ID, 0)?.handedOut;
  tracked.remember(record(1), 0, false);
  tracked.remember(record(2), 0, false);
  expect(isHandedOut()).toBe(false);
  tracked.remember(record(3), 0, true);
  tracked.remember(record(4), 0, false);
  expect(isHandedOut()).toBe(true);
  tracked.remember(record(5, C2), 0, false);
  expect(isHandedOut()).toBe(false);
});

test('a container is known to be of its sandbox for as long as that is remembered with it', () => {
  const tracked = new TrackedLeases(LEASE_MS);
  tracked.remember(record(1), 0, true);
  tracked.remember(record(1, null, OTHER), 0, true);
  expect(tracked.sandboxOf(C1)).toBe(ID);
  expect(tracked.sandboxOf(C2)).toBeNull();
  tracked.remember(record(2, C2), 0, true);
  expect(tracked.sandboxOf(C1)).toBeNull();
  expect(tracked.sandboxOf(C2)).toBe(ID);
  tracked.remember(record(3, C2, OTHER), 0, true);
  tracked.forget(ID, 2 as Fence);
  expect(tracked.sandboxOf(C2)).toBe(OTHER);
  tracked.all(LEASE_MS);
  expect(tracked.sandboxOf(C2)).toBeNull();
});
