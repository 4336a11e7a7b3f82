import { expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const eventsOf = ({ events }: Replica, type: BrokerEvent['type']) => events.filter((event) => event.type === type);
const states = (world: World) => world.engine.containers.map(({ state }) => state);

test('[T-13] a pass tells what it saw: containers, steps, and what this replica owns by state', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('active'));
  const { sandbox, hold } = handedOut(await a.take('warm'));
  await a.store.release(sandbox.id, hold);
  handedOut(await b.take('peer'));
  const create = a.points.hold('create');
  void a.take('starting').catch(() => undefined);
  await create.reached;
  world.database.plant(world.idOf('unreadable'), { v: 'x' } as never);
  const list = a.points.hold('list');
  const pass = a.reconciler.pass();
  await list.reached;
  await world.clock.advance(700);
  list.release();
  await pass;
  const owned = { starting: 1, active: 1, warm: 1, destroying: 0 };
  expect(eventsOf(a, 'reconcile-pass')).toEqual([
    {
      type: 'reconcile-pass',
      containers: 3,
      steps: 0,
      owned,
      fleet: { ...owned, active: 2 },
      unreadable: 1,
      suspects: { count: 0, oldestMs: 0 },
      durationMs: 700,
    },
  ]);
  create.release();
});

test('all records are read, page by page', async () => {
  const world = new World({ maxSandboxes: 0 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  for (let n = 0; n < 401; n += 1) handedOut(await a.take(`u${n}`));
  await world.pass(LEASE_MS, b);
  await b.reconciler.pass();
  expect(b.storePoints.count('page')).toBe(3);
  expect(eventsOf(b, 'adopted')).toHaveLength(401);
  const { id, fence, container } = world.record('u7')!;
  expect(eventsOf(b, 'adopted')).toContainEqual({ type: 'adopted', sandbox: id, fence, container });
});

test('[L-28] a record that became unreadable meanwhile is told, and stops no other step', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  for (const user of ['u', 'v']) handedOut(await a.take(user));
  await world.pass(LEASE_MS, b);
  const page = b.storePoints.hold('page', 'after');
  const pass = b.reconciler.pass();
  await page.reached;
  world.database.plant(world.idOf('u'), { v: 'x' } as never);
  page.release();
  await pass;
  expect(eventsOf(b, 'record-unreadable')).toMatchObject([{ sandbox: world.idOf('u') }]);
  expect(world.record('v')?.owner).toBe('b');
});

test('[T-14] any other error ends the pass', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  for (const user of ['u', 'v']) handedOut(await a.take(user));
  await world.pass(LEASE_MS, b);
  b.storePoints.failNext('adopt', new Error('odd'));
  await expect(b.reconciler.pass()).rejects.toThrow('odd');
  expect(b.storePoints.count('adopt')).toBe(1);
});

test('[T-10] of two that would finish one expired removal the other removes nothing', async () => {
  const world = new World();
  const [a, b, c] = [world.replica('a'), world.replica('b'), world.replica('c')];
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, a);
  a.points.hold('condemn');
  await a.reaper.pass(); // and nothing is heard of it any more
  await world.pass(LEASE_MS, b, c);
  const claim = b.storePoints.hold('claim');
  const late = b.reconciler.pass();
  await claim.reached;
  await c.reconciler.pass();
  claim.release();
  await late;
  await Promise.all([b.tasks.drained(60_000), c.tasks.drained(60_000)]);
  expect([eventsOf(b, 'claimed').length, eventsOf(c, 'claimed').length]).toEqual([0, 1]);
  expect(eventsOf(b, 'removal-failed')).toEqual([]);
  expect(world.engine.containers).toEqual([]);
});

test('[T-18] an unsettled record that was verified meanwhile is left alone', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const { container, url } = world.record('u')!;
  await a.runtime.condemn(world.idOf('u'), container!);
  world.database.beginLife();
  await a.renewal.pass();
  await a.reconciler.pass();
  await world.pass(LEASE_MS, a);
  const claim = a.storePoints.hold('claim');
  const pass = a.reconciler.pass();
  await claim.reached;
  await a.store.verify(world.idOf('u'), container!, url!);
  claim.release();
  await pass;
  await a.tasks.drained(60_000);
  expect(eventsOf(a, 'removal-failed')).toEqual([]);
  expect(states(world)).toEqual(['running']);
});

test('[T-09] an adoption that is refused is not remembered', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  await world.pass(LEASE_MS, b);
  const adopt = b.storePoints.hold('adopt');
  const pass = b.reconciler.pass();
  await adopt.reached;
  await a.renewal.pass(); // it was only slow
  handedOut(await a.take('u'));
  adopt.release();
  await pass;
  expect(b.tracked.size).toBe(0);
  expect(eventsOf(b, 'adopted')).toEqual([]);
});

test('[L-30] an end is looked at once more: the list may be older than the container', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.engine.kill(container!.id);
  const list = a.points.hold('list', 'after');
  const pass = a.reconciler.pass();
  await list.reached;
  world.engine.run(container!.id);
  list.release();
  await pass;
  expect(world.record('u')?.state).toBe('ready');
  expect(a.tracked.size).toBe(1);
});

test('[L-30] what has ended is told with all that is known of it, and forgotten', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  const end = { exitCode: 3, reason: 'it exited', logTail: 'bye', endedAt: 1_700_000_000_000 };
  world.engine.kill(container!.id, end);
  await a.reconciler.pass();
  expect(world.record('u')?.previous).toEqual(end);
  expect(a.tracked.size).toBe(0);
  const { exitCode, reason } = end;
  expect(eventsOf(a, 'ended')).toEqual([
    { type: 'ended', sandbox: world.idOf('u'), container: container!.id, reason, exitCode },
  ]);
});

test.for(['nothing is left', 'the engine is silent'] as const)(
  '[L-30] where %s about an end, its time is the present one',
  async (what) => {
    const world = new World();
    const a = world.replica('a');
    handedOut(await a.take('u'));
    world.engine.vanish(world.engine.containers[0]!.id);
    if (what === 'the engine is silent') a.points.failNext('postMortem', new Error('no answer'));
    await world.clock.advance(5);
    await a.reconciler.pass();
    const reason = 'its container was removed by somebody else';
    const expected = { endedAt: world.clock.wall(), reason, exitCode: null, logTail: '' };
    expect(world.record('u')?.previous).toEqual(expected);
  },
);

test('[L-30] an end that is told while the sandbox was started anew leaves the new lease remembered', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const old = world.engine.containers[0]!.id;
  world.engine.kill(old);
  const end = a.storePoints.hold('end', 'after');
  const noted = a.endings.note(world.idOf('u'), old);
  await end.reached;
  handedOut(await a.take('u'));
  end.release();
  await noted;
  expect(a.tracked.size).toBe(1);
});

test('[T-11] a stray whose removal failed is tried again after a pause, not at each pass', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.engine.kill(container!.id);
  world.database.remove(world.idOf('u'));
  a.points.break('remove', () => new Error('no answer'));
  const passes = async (count: number): Promise<void> => {
    for (let pass = 0; pass < count; pass += 1) {
      await a.reconciler.pass();
      await a.tasks.drained(60_000);
    }
  };
  await passes(1);
  await world.clock.advance(LEASE_MS);
  await passes(2); // removed in vain, and seen condemned
  await world.clock.advance(LEASE_MS);
  await passes(3);
  expect(a.points.count('remove')).toBe(2);
  a.points.repair('remove');
  await world.clock.advance(2 * LEASE_MS);
  await passes(1);
  expect(world.engine.containers).toEqual([]);
});
