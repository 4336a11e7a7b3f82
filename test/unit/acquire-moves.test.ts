import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const eventsOf = ({ events }: Replica, type: BrokerEvent['type']) => events.filter((event) => event.type === type);
const states = (world: World) => world.engine.containers.map(({ state }) => state);

/** An unverified sandbox that is held: its record is of an earlier life. */
async function unverified(world: World, replica: Replica): Promise<void> {
  handedOut(await replica.take('u'));
  world.database.beginLife();
}

test('[T-02] a sandbox that was destroyed between look and verify is started anew', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await unverified(world, a);
  const verify = a.storePoints.hold('verify');
  const answer = a.take('u');
  await verify.reached;
  expect(await b.destroy.run(world.idOf('u'))).toBe('gone');
  verify.release();
  expect(handedOut(await answer).origin).toBe('created');
  expect(world.record('u')?.holds.size).toBe(1);
});

test('[T-02] a start whose lease was taken over before its residue was named begins again', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  world.engine.kill(world.engine.containers[0]!.id);
  const residue = a.storePoints.hold('residue');
  const answer = a.take('u');
  await residue.reached;
  world.database.remove(world.idOf('u'));
  const peer = handedOut(await b.take('u'));
  residue.release();
  const mine = handedOut(await answer);
  expect(mine).toMatchObject({ origin: 'reused', sandbox: { url: peer.sandbox.url } });
  await Promise.all([a.tasks.drained(60_000), b.tasks.drained(60_000)]);
  expect(states(world)).toEqual(['running']);
});

test.for(['made', 'found'] as const)(
  '[T-02] a start whose activation is refused keeps the container that was %s, and hands out what there is',
  async (what) => {
    const world = new World();
    const [a, b] = [world.replica('a'), world.replica('b')];
    if (what === 'found') {
      handedOut(await a.take('u'));
      world.database.remove(world.idOf('u'));
    }
    const activate = a.storePoints.hold('activate');
    const answer = a.take('u');
    await activate.reached;
    world.database.remove(world.idOf('u'));
    const peer = handedOut(await b.take('u'));
    expect(peer.origin).toBe('discovered');
    activate.release();
    expect(handedOut(await answer)).toMatchObject({ origin: 'reused', sandbox: { url: peer.sandbox.url } });
    expect(states(world)).toEqual(['running']);
    expect(eventsOf(a, 'start-failed')).toEqual([]);
  },
);

test('[A-04] a name that was taken in between is looked at again', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const create = a.points.hold('create');
  const answer = a.take('u');
  await create.reached;
  const mine = world.record('u')!;
  world.database.remove(world.idOf('u'));
  handedOut(await b.take('u'));
  world.database.put(mine); // a failover that lost what b did
  create.release();
  expect(handedOut(await answer).origin).toBe('discovered');
  expect(states(world)).toEqual(['running']);
});

test('[A-11] a start that failed is told with what it made', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('waitReady', new BrokerError('sandbox_not_ready', 'no 200'));
  await expect(a.take('u')).rejects.toMatchObject({ code: 'sandbox_not_ready' });
  a.points.failNext('ensureImage', new Error('odd'));
  await expect(a.take('v')).rejects.toThrow('odd');
  const [first, second] = eventsOf(a, 'start-failed');
  expect(first).toMatchObject({ sandbox: world.idOf('u'), code: 'sandbox_not_ready', message: 'no 200' });
  expect(first).toMatchObject({ container: expect.any(String) });
  expect(second).toMatchObject({ sandbox: world.idOf('v'), code: 'internal_error', container: null });
});

test('[A-06] a restart tells why the container ended, at the present time if that is not known', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id, { endedAt: null, reason: 'killed', exitCode: 9 });
  await world.clock.advance(7);
  const { previous } = handedOut(await a.take('u'));
  expect(previous).toMatchObject({ endedAt: world.clock.wall(), reason: 'killed', exitCode: 9 });
  world.engine.vanish(world.record('u')!.container!);
  expect(handedOut(await a.take('u')).previous).toMatchObject({ reason: 'killed' }); // nothing newer is known
});

test('[A-07] why a sandbox cannot be handed out is told', async () => {
  const world = new World();
  const a = world.replica('a');
  await unverified(world, a);
  a.points.break('look', () => new BrokerError('runtime_timeout', 'the engine is silent'));
  const silent = { code: 'sandbox_unsettled', message: expect.stringContaining('the engine is silent') };
  await expect(a.take('u', 0)).rejects.toMatchObject({ ...silent, retryAfterMs: 1_000 });
  a.points.repair('look');
  await a.runtime.condemn(world.idOf('u'), world.record('u')!.container!);
  const condemned = { code: 'sandbox_unsettled', message: expect.stringContaining('its removal was begun') };
  await expect(a.take('u', 0)).rejects.toMatchObject(condemned);
});

test('[A-07] an engine whose mark is not known says nothing', async () => {
  const world = new World();
  const a = world.replica('a');
  await unverified(world, a);
  const b = world.replica('b');
  b.points.break('mark', () => new BrokerError('runtime_timeout', 'no mark'));
  world.engine.vanish(world.engine.containers[0]!.id);
  await expect(b.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  expect(world.record('u')?.state).toBe('ready');
});

test('[A-05] an engine that cannot say what has the name starts nothing', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('look', new Error('odd'));
  await expect(a.take('u')).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(a.points.count('create')).toBe(0);
});

test('[L-28] a ready record without a container is an error that says what to do', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.put({ ...world.record('u')!, container: null });
  await expect(a.take('u')).rejects.toMatchObject({ code: 'record_unreadable' });
});

test('[T-11] a removal tells its claim and its end; one that succeeded has no pause to wait for', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  const { container, fence } = world.record('u')!;
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, a);
  const remove = a.points.hold('remove');
  await a.reaper.pass();
  await remove.reached;
  await world.clock.advance(700);
  remove.release();
  await a.tasks.drained(60_000);
  const about = { reason: 'idle', sandbox: sandbox.id, container };
  expect(eventsOf(a, 'claimed')).toEqual([{ type: 'claimed', ...about, fence }]);
  expect(eventsOf(a, 'removed')).toEqual([{ type: 'removed', ...about, durationMs: 700 }]);
});

test('[A-06] residue that runs again is left, and that is told', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const old = world.engine.containers[0]!.id;
  world.engine.kill(old);
  const remove = a.points.hold('remove');
  handedOut(await a.take('u'));
  await remove.reached;
  world.engine.run(old);
  remove.release();
  await a.tasks.drained(60_000);
  expect(eventsOf(a, 'removal-stopped')).toMatchObject([{ because: 'it runs again', container: old }]);
  expect(eventsOf(a, 'removed')).toEqual([]);
  await world.pass(LEASE_MS, a);
});

test('[A-01] a start tells how long its parts took, and what is left of its time goes to becoming ready', async () => {
  const world = new World();
  const a = world.replica('a');
  const limits: unknown[] = [];
  const { waitReady } = a.runtime;
  a.runtime.waitReady = (...args) => {
    limits.push((args as unknown[])[2]);
    return waitReady.apply(a.runtime, args);
  };
  const [create, start, ready] = [a.points.hold('create'), a.points.hold('start'), a.points.hold('waitReady')];
  const answer = a.take('u');
  for (const [held, ms] of [
    [create, 100],
    [start, 20],
    [ready, 3],
  ] as const) {
    await held.reached;
    await world.clock.advance(ms);
    held.release();
  }
  handedOut(await answer);
  expect(eventsOf(a, 'started')).toMatchObject([{ createMs: 100, startMs: 20, readyMs: 3 }]);
  expect(limits).toEqual([world.settings.startTimeoutMs - 120]);
});
