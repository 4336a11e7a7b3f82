import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { HOLD_MS, handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const down = (): BrokerError => new BrokerError('store_unavailable', 'no connection');

async function reaped(world: World, replica: Replica): Promise<boolean> {
  await replica.reaper.pass();
  await replica.tasks.drained(60_000);
  return world.engine.containers.length === 0;
}

test('[T-01] an unheld sandbox is removed after the idle time, not before', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS - 1, a);
  expect(await reaped(world, a)).toBe(false);
  await world.clock.advance(1);
  expect(await reaped(world, a)).toBe(true);
});

test('[T-01] the hold of a silent caller counts for its time; then the idle time begins', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  await world.pass(HOLD_MS + IDLE_MS - 1, a);
  expect(await reaped(world, a)).toBe(false);
  await world.clock.advance(1);
  expect(await reaped(world, a)).toBe(true);
});

test('[T-01] a keepalive through any replica counts at once', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox, hold } = handedOut(await a.take('u'));
  await world.pass(HOLD_MS + IDLE_MS, a);
  await b.store.keepalive(sandbox.id, hold);
  expect(await reaped(world, a)).toBe(false);
});

test('[T-13] reading, listing and reconciling count as no activity', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  for (let step = 0; step < 20; step += 1) {
    await world.pass(IDLE_MS / 20, a);
    await a.reconciler.pass();
    await a.store.read(sandbox.id);
    await a.store.page(null, 10);
  }
  expect(await reaped(world, a)).toBe(true);
});

test('[T-01] a crowd of idle sandboxes goes a few at a time; one that waits for its removal is still handed out', async () => {
  const world = new World();
  const a = world.replica('a');
  const users = Array.from({ length: 10 }, (_, n) => `user ${n}`);
  for (const user of users) {
    const { sandbox, hold } = handedOut(await a.take(user));
    await a.store.release(sandbox.id, hold);
  }
  await world.pass(IDLE_MS, a);
  const held = Array.from({ length: 10 }, () => a.points.hold('condemn'));
  const { waiting } = world.clock;
  const pass = a.reaper.pass();
  await held[3]!.reached;
  await world.clock.advance(5_000);
  expect(a.storePoints.count('claim')).toBe(4);
  const last = users.at(-1)!;
  expect(handedOut(await a.take(last)).origin).toBe('reclaimed');
  held[0]!.release();
  await held[4]!.reached;
  expect(a.storePoints.count('claim')).toBe(5);
  for (const point of held) point.release();
  await pass;
  expect(world.clock.waiting, 'a timer is left').toBe(waiting);
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
  expect(world.record(last)?.state).toBe('ready');
});

test.for(['is stopped', 'runs out of patience'])(
  '[T-01] a reaper whose removals do not end claims nothing more when it %s',
  async (how) => {
    const world = new World();
    const a = world.replica('a');
    for (let n = 0; n < 6; n += 1) {
      const { sandbox, hold } = handedOut(await a.take(`user ${n}`));
      await a.store.release(sandbox.id, hold);
    }
    await world.pass(IDLE_MS, a);
    const held = Array.from({ length: 6 }, () => a.points.hold('condemn'));
    const stopping = new AbortController();
    const pass = a.reaper.pass(stopping.signal);
    await held[3]!.reached;
    if (how === 'is stopped') stopping.abort();
    else await world.pass(60_000, a);
    await pass;
    for (const point of held) point.release();
    await a.tasks.drained(60_000);
    expect(a.storePoints.count('claim')).toBe(4);
    expect(world.engine.containers).toHaveLength(2);
  },
);

test('[T-04] renewal covers starting and ready, held or not, and no slow container call delays it', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox, hold } = handedOut(await a.take('unheld'));
  await a.store.release(sandbox.id, hold);
  handedOut(await a.take('held'));
  const pull = a.points.hold('ensureImage');
  const slow = a.take('starting', 0);
  await pull.reached;
  await world.pass(5 * LEASE_MS, a);
  for (const user of ['unheld', 'held', 'starting']) {
    expect(world.record(user)!.expiresAt).toBeGreaterThan(world.database.now());
  }
  await b.reconciler.pass();
  expect(b.tracked.size).toBe(0);
  pull.release();
  expect((await slow).kind).toBe('starting');
  await a.tasks.drained(60_000);
  expect(world.record('starting')?.state).toBe('ready');
});

test('[T-05] lapsed is written again with an unknown hold; a keepalive of before revives its hold', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  world.database.remove(sandbox.id);
  await a.renewal.pass();
  const record = world.record('u')!;
  expect(record).toMatchObject({ state: 'ready', owner: 'a', userId: 'u', verified: false, url: sandbox.url });
  expect([...record.holds.keys()]).toEqual([0]);
  expect(record.fence).toBeGreaterThan(hold);
  expect(await a.store.keepalive(sandbox.id, hold)).toMatchObject({ state: 'ready' });
});

test('[T-05] lost is forgotten without touching the container', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  handedOut(await b.take('u'));
  await a.renewal.pass();
  expect(a.tracked.size).toBe(0);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  expect(world.record('u')?.owner).toBe('b');
});

test('[T-05] a lost that arrives after this replica took the sandbox again changes nothing', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  handedOut(await b.take('u'));
  const renew = a.storePoints.hold('renew', 'after');
  const pass = a.renewal.pass();
  await renew.reached;
  const again = handedOut(await a.take('u'));
  renew.release();
  await pass;
  expect(a.tracked.current(again.sandbox.id, world.clock.monotonic())?.record.fence).toBe(again.hold);
});

test.for(['renew', 'reassert'] as const)('[T-05] an error of %s changes nothing', async (method) => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox } = handedOut(await a.take('u'));
  if (method === 'reassert') world.database.remove(sandbox.id);
  a.storePoints.break(method, down);
  await expect(a.renewal.pass()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(a.tracked.size).toBe(1);
  a.storePoints.repair(method);
  await a.renewal.pass();
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'a' });
});

test('[T-08] a lease that could not be renewed for its duration is not acted on any more', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.clock.advance(IDLE_MS); // frozen: nothing was renewed
  const claims = a.storePoints.count('claim');
  await a.reaper.pass();
  await a.renewal.pass();
  expect(a.storePoints.count('claim')).toBe(claims);
  expect(a.tracked.size).toBe(0);
});

test('[T-14] the store cannot answer: nothing is reaped, adopted or forgotten, also when it fails in the middle of a pass', async () => {
  const world = new World();
  const a = world.replica('a');
  for (const user of ['u', 'v']) {
    const { sandbox, hold } = handedOut(await a.take(user));
    await a.store.release(sandbox.id, hold);
  }
  await world.pass(IDLE_MS, a);
  for (const method of ['readMany', 'claim', 'page', 'settleEngine'] as const) {
    a.storePoints.break(method, down);
    const reaping = method === 'readMany' || method === 'claim';
    await expect(reaping ? a.reaper.pass() : a.reconciler.pass()).rejects.toMatchObject({ code: 'store_unavailable' });
    a.storePoints.repair(method);
  }
  expect(world.engine.containers).toHaveLength(2);
  expect(a.tracked.size).toBe(2);
});

test('[T-09] a container without a record is adopted only after a full lease; an owner that comes back starts the wait anew', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox } = handedOut(await a.take('u'));
  for (let round = 0; round < 2; round += 1) {
    world.database.remove(sandbox.id);
    await b.reconciler.pass();
    await world.clock.advance(LEASE_MS - 1);
    await b.reconciler.pass();
    expect(world.record('u')).toBeNull();
    if (round === 0) {
      await a.renewal.pass(); // too old to be acted on: it comes back by an acquire
      handedOut(await a.take('u'));
      await b.reconciler.pass();
    }
  }
  await world.clock.advance(1);
  await b.reconciler.pass();
  expect(world.record('u')).toMatchObject({
    owner: 'b',
    state: 'ready',
    userId: 'u',
    threadId: 'thread',
    profile: 'default',
  });
});

test('[T-09] a pass in which the store did not answer starts the wait anew', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox } = handedOut(await a.take('u'));
  world.database.remove(sandbox.id);
  await b.reconciler.pass();
  await world.clock.advance(LEASE_MS / 2);
  b.storePoints.failNext('page', down());
  await expect(b.reconciler.pass()).rejects.toMatchObject({ code: 'store_unavailable' });
  await world.clock.advance(LEASE_MS / 2);
  await b.reconciler.pass();
  expect(world.record('u')).toBeNull();
  await world.clock.advance(LEASE_MS);
  await b.reconciler.pass();
  expect(world.record('u')?.owner).toBe('b');
});

test('[T-09] without peers it is adopted at once', async () => {
  const world = new World();
  const a = world.replica('a', { peers: false });
  const b = world.replica('b', { peers: false });
  const { sandbox } = handedOut(await a.take('u'));
  world.database.remove(sandbox.id);
  await b.reconciler.pass();
  expect(world.record('u')).toMatchObject({ owner: 'b', verified: false });
  expect([...(world.record('u')?.holds.keys() ?? [])]).toEqual([0]);
});

test('[T-16] sightings are forgotten with the container and kept when a list fails', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const stray = world.engine.containers[0]!;
  await b.runtime.condemn(world.idOf('u'), stray.id);
  world.database.remove(world.idOf('u')); // condemned, and named by no record
  await b.reconciler.pass();
  await world.clock.advance(LEASE_MS);
  b.points.failNext('list', new BrokerError('runtime_timeout', 'no answer'));
  await expect(b.reconciler.pass()).rejects.toMatchObject({ code: 'runtime_timeout' });
  expect(world.engine.containers).toHaveLength(1);
  await b.reconciler.pass();
  await b.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[T-17] a container that a verified record does not name is removed after two sightings a lease apart', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [stray] = world.engine.containers;
  const record = world.record('u')!;
  world.engine.run(stray!.id);
  world.database.put({ ...record, container: 'other' as never, engine: null, verified: false });
  for (let pass = 0; pass < 3; pass += 1) {
    await a.reconciler.pass();
    await world.pass(LEASE_MS, a);
  }
  expect(world.engine.containers).toHaveLength(1); // never while the record is unverified
  world.database.put({ ...world.record('u')!, verified: true });
  await a.reconciler.pass();
  await world.pass(LEASE_MS - 1, a);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
  await world.clock.advance(1);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[T-18] a container left condemned under an unverified record is cleared by the reconciler, and the identity works again', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  await a.runtime.condemn(world.idOf('u'), container!.id);
  world.database.beginLife();
  await a.renewal.pass();
  await expect(a.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  await a.reconciler.pass();
  await world.pass(LEASE_MS, a);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(handedOut(await a.take('u')).origin).toBe('created');
});

test('a dead container without a record is removed after a lease, not adopted', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id);
  world.database.remove(world.idOf('u'));
  await a.reconciler.pass();
  await world.clock.advance(LEASE_MS);
  expect(world.engine.containers).toHaveLength(1);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')).toBeNull();
});

test('[L-30] a container that ended by itself: the record becomes a tombstone that tells why', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id, { exitCode: 3, reason: 'it exited' });
  await a.reconciler.pass();
  expect(world.record('u')).toMatchObject({ state: 'gone', previous: { exitCode: 3, reason: 'it exited' } });
  expect(handedOut(await a.take('u')).previous).toMatchObject({ exitCode: 3 });
});

test('[R-22] a labelled container with a name that is none of ours is reported once and left alone', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.engine.get(container!.id).name = 'renamed-by-hand';
  for (let pass = 0; pass < 3; pass += 1) {
    await a.reconciler.pass();
    await world.clock.advance(2 * LEASE_MS);
  }
  expect(a.events.filter(({ type }) => type === 'foreign-name')).toHaveLength(1);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});

test('[T-07] a peer adopts what a dead owner left, holds and idle clock kept, and reaps it on time', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  const idleSince = world.record('u')?.idleSince;
  for (let step = 0; step < 6; step += 1) {
    await b.renewal.pass(); // somebody renews in this life; a is dead
    await world.clock.advance(LEASE_MS / 3);
  }
  await b.reconciler.pass();
  expect(world.record('u')).toMatchObject({ owner: 'b', idleSince });
  await world.pass(IDLE_MS - 2 * LEASE_MS, b);
  expect(await reaped(world, b)).toBe(true);
});

test('[T-20] an outage longer than holds and idle time together: holders get a full hold time to come back', async () => {
  const world = new World();
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  await world.clock.advance(HOLD_MS + 2 * IDLE_MS);
  await a.renewal.pass();
  await a.reconciler.pass();
  await world.pass(HOLD_MS - 1_000, a);
  expect(await reaped(world, a)).toBe(false);
  expect(await a.store.keepalive(sandbox.id, hold)).toMatchObject({ state: 'ready' });
  expect(world.engine.containers).toHaveLength(1);
});

test('[T-06] the store comes back with a copy of before the activation: the owner writes it back, and holds are revived', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const activate = a.storePoints.hold('activate');
  const taking = a.take('u');
  await activate.reached;
  const older = world.record('u')!;
  activate.release();
  const { hold, sandbox } = handedOut(await taking);
  world.database.beginLife();
  world.database.put(older);
  await a.renewal.pass();
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'a', verified: false, url: sandbox.url });
  expect(await b.store.keepalive(sandbox.id, hold)).toMatchObject({ state: 'ready' });
});

test('[T-06] an expired start with something running under its name is adopted after a lease, not removed', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u')); // somebody works in it
  world.database.remove(world.idOf('u'));
  a.points.hold('look');
  void a.take('u', 0).catch(() => undefined); // a takes the lease, and dies before it finds the container
  await world.clock.settle();
  await b.renewal.pass();
  for (let pass = 0; pass < 2; pass += 1) {
    await world.pass(LEASE_MS, b);
    await b.reconciler.pass();
    await b.tasks.drained(60_000);
    expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
    expect(world.record('u')?.state).toBe(pass === 0 ? 'starting' : 'ready');
  }
  expect(world.record('u')).toMatchObject({ owner: 'b', verified: false, userId: 'u' });
});

test('[T-18] a condemned container that was seen fit since gets its name back after a lease', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, a);
  const condemn = a.points.hold('condemn');
  const ready = world.record('u')!;
  await a.reaper.pass();
  await condemn.reached;
  world.database.beginLife(); // the store goes back to before the claim
  world.database.put(ready);
  handedOut(await b.take('u')); // seen fit, and handed out, in the new life
  condemn.release();
  await a.tasks.drained(60_000);
  await expect(b.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  await b.reconciler.pass();
  await world.pass(LEASE_MS, b);
  await b.reconciler.pass();
  expect(handedOut(await b.take('u', 0)).sandbox.url).toBe(sandbox.url);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});
