import { expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { handedOut, LEASE_MS, type Replica, World } from '../support/world.ts';

const eventsOf = ({ events }: Replica, type: BrokerEvent['type']) => events.filter((event) => event.type === type);

test('[T-08] a lease is as old as the sending of its renewal, however late the reply', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const renew = a.storePoints.hold('renew', 'after');
  const pass = a.renewal.pass();
  await renew.reached;
  await world.clock.advance(LEASE_MS - 1);
  renew.release();
  await pass;
  expect(a.tracked.current(world.idOf('u'), world.clock.monotonic())).not.toBeNull();
  await world.clock.advance(1);
  expect(a.tracked.current(world.idOf('u'), world.clock.monotonic())).toBeNull();
});

test('[L-13] a pass renews every lease once, in batches of 200, and tells how many and for how long', async () => {
  const world = new World({ maxSandboxes: 0 });
  const a = world.replica('a');
  for (let n = 0; n < 401; n += 1) handedOut(await a.take(`u${n}`));
  await world.clock.advance(5_000);
  const before = a.storePoints.count('renew');
  const renew = a.storePoints.hold('renew');
  const pass = a.renewal.pass();
  await renew.reached;
  await world.clock.advance(700);
  renew.release();
  await pass;
  expect(a.storePoints.count('renew') - before).toBe(3);
  expect(eventsOf(a, 'renewal-pass')).toEqual([{ type: 'renewal-pass', renewed: 401, durationMs: 700 }]);
  for (let n = 0; n < 401; n += 200) expect(world.record(`u${n}`)?.expiresAt).toBe(world.clock.wall() + LEASE_MS);
});

test('[T-05] what was taken anew while its renewal was on its way is not written back', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  const renew = a.storePoints.hold('renew', 'after');
  const pass = a.renewal.pass();
  await renew.reached;
  handedOut(await a.take('u'));
  const { fence } = world.record('u')!;
  renew.release();
  await pass;
  expect(a.storePoints.count('reassert')).toBe(0);
  expect(world.record('u')?.fence).toBe(fence);
  expect(a.tracked.current(world.idOf('u'), world.clock.monotonic())?.record.fence).toBe(fence);
});

test('[T-05] what was forgotten meanwhile is not written back either', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const { fence } = world.record('u')!;
  world.database.remove(world.idOf('u'));
  const renew = a.storePoints.hold('renew', 'after');
  const pass = a.renewal.pass();
  await renew.reached;
  a.tracked.forget(world.idOf('u'), fence);
  renew.release();
  await pass;
  expect(world.record('u')).toBeNull();
});

test('[T-05] a start whose record is missing is forgotten, not written back: it goes on by itself', async () => {
  const world = new World();
  const a = world.replica('a');
  const create = a.points.hold('create');
  const answer = a.take('u');
  await create.reached;
  world.database.remove(world.idOf('u'));
  await a.renewal.pass();
  expect(a.storePoints.count('reassert')).toBe(0);
  expect(a.tracked.size).toBe(0);
  create.release();
  expect(handedOut(await answer).origin).toBe('discovered');
});

test('[T-05] a lease written back is remembered under its new fence; one that is refused is lost', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const before = world.record('u')!;
  world.database.remove(world.idOf('u'));
  await a.renewal.pass();
  const { fence } = world.record('u')!;
  expect(fence).toBeGreaterThan(before.fence);
  expect(eventsOf(a, 'lease-reasserted')).toEqual([{ type: 'lease-reasserted', sandbox: before.id, fence }]);
  expect(a.tracked.current(before.id, world.clock.monotonic())).toMatchObject({ record: { fence }, handedOut: true });
  world.database.remove(world.idOf('u'));
  const reassert = a.storePoints.hold('reassert');
  const pass = a.renewal.pass();
  await reassert.reached;
  handedOut(await b.take('u'));
  reassert.release();
  await pass;
  expect(world.record('u')?.owner).toBe('b');
  expect(a.tracked.size).toBe(0);
  expect(eventsOf(a, 'lease-lost')).toEqual([{ type: 'lease-lost', sandbox: before.id, fence }]);
});

test('[T-05] a lease that a peer took is told as lost, once', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const { id, fence } = world.record('u')!;
  handedOut(await b.take('u'));
  await a.renewal.pass();
  await a.renewal.pass();
  expect(eventsOf(a, 'lease-lost')).toEqual([{ type: 'lease-lost', sandbox: id, fence }]);
});
