import { expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { BackgroundLoop } from '../../src/lifecycle/background-loop.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const silent = (): Error => new Error('no answer');

/** A sandbox of a's that is idle, and whose removal does not get an answer. */
async function removedInVain(world: World, a: Replica): Promise<void> {
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, a);
  a.points.break('remove', silent);
  await a.reaper.pass();
  await a.tasks.drained(60_000);
}

test('a teardown is open from its first attempt until the container is gone, however often it is tried', async () => {
  const world = new World();
  const a = world.replica('a');
  expect(a.teardown.open()).toEqual({ count: 0, oldestMs: 0 });
  await removedInVain(world, a);
  for (const passes of [1, 2, 3]) {
    await world.clock.advance(LEASE_MS);
    await a.reconciler.pass();
    await a.tasks.drained(60_000);
    expect(a.teardown.open()).toEqual({ count: 1, oldestMs: passes * LEASE_MS });
  }
  a.points.repair('remove');
  await world.clock.advance(600_000);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(a.teardown.open()).toEqual({ count: 0, oldestMs: 0 });
});

test('a teardown that a peer has finished is not open any more', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await removedInVain(world, a);
  await world.clock.advance(LEASE_MS);
  await b.reconciler.pass();
  await b.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(a.teardown.open().count).toBe(1);
  await a.reconciler.pass();
  expect(a.teardown.open()).toEqual({ count: 0, oldestMs: 0 });
});

test('a reconcile pass tells of containers that no record accounts for, and since when, and of the whole fleet', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('kept'));
  handedOut(await b.take('lost'));
  const told = (): BrokerEvent | undefined => b.events.findLast(({ type }) => type === 'reconcile-pass');
  const warm = { starting: 0, active: 0, warm: 0, destroying: 0 };
  await b.reconciler.pass();
  expect(told()).toMatchObject({
    owned: { ...warm, active: 1 },
    fleet: { ...warm, active: 2 },
    suspects: { count: 0, oldestMs: 0 },
  });
  world.database.remove(world.idOf('lost'));
  await b.reconciler.pass();
  expect(told()).toMatchObject({ owned: warm, fleet: { ...warm, active: 1 }, suspects: { count: 1, oldestMs: 0 } });
  await world.clock.advance(LEASE_MS / 2);
  await b.reconciler.pass();
  expect(told()).toMatchObject({ suspects: { count: 1, oldestMs: LEASE_MS / 2 } });
});

test('a loop tells of each pass that succeeded how long it took and how late it began', async () => {
  const clock = new ManualClock();
  const events: BrokerEvent[] = [];
  let late = 0;
  const slow = {
    wall: () => clock.wall(),
    monotonic: () => clock.monotonic(),
    pause: (ms: number, signal?: AbortSignal) => clock.pause(ms + late, signal),
  };
  const loop = new BackgroundLoop({
    ...{ name: 'test', intervalMs: 1_000, first: 'at once', clock: slow, random: () => 0.5 },
    emit: (event) => void events.push(event),
    pass: () => clock.pause(30),
  });
  loop.start();
  await clock.advance(30);
  late = 250;
  await clock.advance(1_030);
  await clock.advance(1_280);
  const pass = { type: 'loop-pass', loop: 'test', intervalMs: 1_000, durationMs: 30 };
  expect(events).toEqual([
    { ...pass, lagMs: 0 },
    { ...pass, lagMs: 0 },
    { ...pass, lagMs: 250 },
  ]);
  loop.wake();
  await clock.advance(30);
  expect(events.at(-1)).toEqual({ ...pass, lagMs: 0 });
  const stopped = loop.stop(1_000);
  await clock.advance(1_000);
  expect(await stopped).toBe(true);
});
