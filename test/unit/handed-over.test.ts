import { expect, test } from 'vitest';
import { asOwnerId } from '../../src/domain/ids.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { assembleLifecycle } from '../../src/lifecycle/assemble.ts';
import { Handouts } from '../../src/service/handouts.ts';
import { handedOut, World } from '../support/world.ts';

test('[S-02] what was handed over at shutdown is not taken back by a renewal that runs until the store is closed', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  await a.shutdown.keep();
  await a.renewal.pass(); // that loop ends last
  await b.reconciler.pass();
  expect(world.record('u')).toMatchObject({ owner: 'b' });
});

test('[S-02] a renewal pass under way takes nothing back that was handed over meanwhile', async () => {
  const world = new World({ maxSandboxes: 0 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  const users = Array.from({ length: 250 }, (_, n) => `u${n}`); // two batches
  for (const user of users) handedOut(await a.take(user));
  const renew = a.storePoints.hold('renew', 'after');
  const pass = a.renewal.pass();
  await renew.reached;
  await a.shutdown.keep();
  renew.release();
  await pass;
  await b.reconciler.pass();
  expect(users.filter((user) => world.record(user)?.owner === 'a')).toEqual([]);
});

test('[S-02] with "destroy" a start that becomes ready while it is looked at is removed too', async () => {
  const world = new World();
  const a = world.replica('a', { peers: false });
  const ready = a.points.hold('waitReady');
  const answer = a.take('u').catch((error: unknown) => error);
  await ready.reached;
  const look = a.points.hold('look');
  const destroyed = a.shutdown.destroy();
  await look.reached;
  ready.release();
  await answer;
  look.release();
  await destroyed;
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ state }) => state)).toEqual([]);
});

/** A replica whose wall clock goes before the store's. */
function ahead(world: World, name: string, spec: string, aheadMs: number) {
  const clock = {
    wall: () => world.clock.wall() + aheadMs,
    monotonic: () => world.clock.monotonic(),
    pause: world.clock.pause.bind(world.clock),
  };
  const profile = { ...world.profile, onSpecChange: 'replace' as const };
  const profiles = new Map([['default', { profile, spec }]]);
  const store = new MemoryLeaseStore({ database: world.database, owner: asOwnerId(name) });
  const { maxSandboxes: max, maxPerUser: perUser, waitTimeoutMs } = world.settings;
  const capacity = { max, perUser, waitTimeoutMs };
  const emit = () => undefined;
  const lifecycle = assembleLifecycle({
    store,
    runtime: world.engine.replica('world'),
    settings: { ...world.settings, capacity, profiles },
    clock,
    random: () => 0.5,
    emit,
  });
  const { acquire, turns, tasks } = lifecycle;
  const handouts = new Handouts({
    store,
    acquire,
    turns,
    tasks,
    clock,
    emit,
    deployment: 'world',
    profiles,
    waitMs: 50_000,
    idleMs: 600_000,
    drained: new AbortController().signal,
  });
  const gone = new AbortController().signal;
  return { store, take: (userId: string) => handouts.acquire({ userId, threadId: 'thread' }, { gone }) };
}

test('[A-15] two replicas with different profiles whose clocks are ahead of the store’s do not replace each other’s in turn', async () => {
  const world = new World();
  const [a, b] = [ahead(world, 'a', 'spec-1', 60_000), ahead(world, 'b', 'spec-2', 60_000)];
  const origins: string[] = [];
  for (const replica of [a, b, a, b, a]) {
    const { sandbox, hold, origin } = handedOut(await replica.take('u'));
    origins.push(origin);
    await replica.store.release(sandbox.id, hold);
    await world.clock.advance(1_000);
  }
  expect(origins).toEqual(['created', 'reclaimed', 'reclaimed', 'reclaimed', 'reclaimed']);
});
