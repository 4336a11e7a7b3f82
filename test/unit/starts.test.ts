import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { asContainerId, asEngineMark } from '../../src/domain/ids.ts';
import type { Held } from '../fakes/fake-points.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const down = (): BrokerError => new BrokerError('store_unavailable', 'no connection');
/** An idle sandbox whose removal stands before this call. */
async function reapedUpTo(world: World, replica: Replica, method: 'condemn' | 'remove'): Promise<Held> {
  const { sandbox, hold } = handedOut(await replica.take('u'));
  await replica.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, replica);
  const point = replica.points.hold(method);
  await replica.reaper.pass();
  await point.reached;
  return point;
}

const states = (world: World) => world.engine.containers.map(({ state }) => state);

test('[A-05] a start whose activation was carried out without a reply leaves no hold behind', async () => {
  const world = new World();
  const a = world.replica('a');
  a.storePoints.failNext('activate', down(), 'after');
  await expect(a.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.record('u')?.state).toBe('ready');
  expect(world.record('u')?.holds.size).toBe(0);
  expect(states(world)).toEqual(['running']);
});

test('[A-14] what was found running and ends before it answers gives way to a new one', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.database.remove(world.idOf('u'));
  const ready = a.points.hold('waitReady');
  const answer = a.take('u');
  await ready.reached;
  world.engine.kill(container!.id);
  ready.release();
  expect(handedOut(await answer).origin).toBe('created');
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ id }) => id)).not.toContain(container!.id);
  expect(states(world)).toEqual(['running']);
});

test('[A-14] what is found under the name and stopped is removed first, and a new one is made', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.database.remove(world.idOf('u'));
  world.engine.kill(container!.id);
  expect(handedOut(await a.take('u')).origin).toBe('created');
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ id }) => id)).not.toContain(container!.id);
});

test('[R-17] only the engine that the record names can say that its container is gone', async () => {
  const world = new World();
  const a = world.replica('a');
  const first = handedOut(await a.take('u'));
  world.engine.vanish(world.engine.containers[0]!.id);
  const record = world.record('u')!;
  world.database.put({ ...record, engine: asEngineMark('another') });
  expect(handedOut(await a.take('u', 0)).sandbox.url).toBe(first.sandbox.url);
  world.database.put({ ...record, engine: asEngineMark('another'), verified: false });
  await expect(a.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  expect(world.engine.containers).toEqual([]);
});

test('[L-25] a record of an earlier life is looked at, whatever the events told', async () => {
  const world = new World();
  const a = world.replica('a');
  const stopping = new AbortController();
  const followed = a.liveness.follow(stopping.signal);
  await world.clock.settle();
  const first = handedOut(await a.take('u'));
  await world.clock.settle();
  const looks = a.points.count('look');
  handedOut(await a.take('u'));
  expect(a.points.count('look')).toBe(looks);
  world.database.beginLife();
  expect(handedOut(await a.take('u')).sandbox.url).toBe(first.sandbox.url);
  expect(a.points.count('look')).toBe(looks + 1);
  expect(world.record('u')?.verified).toBe(true);
  stopping.abort();
  await followed;
});

test('[R-11] a create without a reply is known by its fence; another start’s container is not taken for it', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('create', new BrokerError('runtime_timeout', 'no answer'), 'after');
  const first = handedOut(await a.take('u'));
  expect(first.origin).toBe('created');
  expect(world.engine.containers).toHaveLength(1);
  a.points.failNext('create', new BrokerError('foreign_container', 'somebody else has the name'));
  await expect(a.take('v')).rejects.toMatchObject({ code: 'foreign_container' });
});

test('[R-11] a create that fails while another start’s container has the name is a failure', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const create = a.points.hold('create');
  const answer = a.take('u');
  await create.reached;
  a.points.break('create', () => new BrokerError('runtime_timeout', 'no answer'));
  world.database.remove(world.idOf('u'));
  handedOut(await b.take('u'));
  create.release();
  await expect(answer).rejects.toMatchObject({ code: 'runtime_timeout' });
  await a.tasks.drained(60_000);
  expect(states(world)).toEqual(['running']);
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'b' });
});

test('[T-02] a removal waits for a start that may have found its container, and gives it back', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const condemn = await reapedUpTo(world, a, 'condemn');
  world.database.remove(world.idOf('u')); // the store lost it, and b finds the container
  const activate = b.storePoints.hold('activate');
  const answer = b.take('u');
  await activate.reached;
  condemn.release();
  await world.clock.advance(1_000);
  expect(states(world)).toEqual(['running']);
  activate.release();
  await world.clock.advance(1_000);
  expect(handedOut(await answer).origin).toBe('discovered');
  expect(states(world)).toEqual(['running']);
});

test('[T-10] a removal waits for an unfinished start no longer than a lease', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const condemn = await reapedUpTo(world, a, 'condemn');
  world.database.remove(world.idOf('u'));
  b.storePoints.hold('activate');
  void b.take('u').catch(() => undefined); // and nothing is heard of it any more
  await world.clock.settle();
  condemn.release();
  await world.clock.advance(LEASE_MS - 1_000);
  expect(a.tasks.size).toBe(1);
  await world.clock.advance(2_000);
  expect(a.tasks.size).toBe(0);
  expect(states(world)).toEqual(['running']); // kept: the start, or whoever finishes it, has it
});

test('[T-17] a stray that a record names again is not condemned', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  expect(await a.teardown.removeStray(world.idOf('u'), container!.id)).toBe('kept');
  expect(a.points.count('condemn')).toBe(0);
});

test('[T-04] what is being removed is not renewed', async () => {
  const world = new World();
  const a = world.replica('a');
  const remove = await reapedUpTo(world, a, 'remove');
  expect(a.tracked.size).toBe(0);
  await a.renewal.pass();
  expect(a.events.filter(({ type }) => type === 'lease-lost')).toEqual([]);
  remove.release();
});

test('[T-11] a removal that failed is tried again after a pause', async () => {
  const world = new World();
  const a = world.replica('a');
  const remove = await reapedUpTo(world, a, 'remove');
  a.points.break('remove', () => new BrokerError('runtime_timeout', 'no answer'));
  remove.release();
  await world.pass(2 * LEASE_MS, a);
  const tries = a.points.count('remove');
  for (let pass = 0; pass < 3; pass += 1) {
    await a.reconciler.pass();
    await world.clock.settle();
  }
  expect(a.points.count('remove')).toBe(tries + 1);
  a.points.repair('remove');
  await world.pass(4 * LEASE_MS, a);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[A-15] the same spec is not replaced by a replica that came later', async () => {
  const world = new World();
  const before = world.replica('before', { onSpecChange: 'replace' });
  const first = handedOut(await before.take('u'));
  await before.store.release(first.sandbox.id, first.hold);
  await world.pass(LEASE_MS, before);
  const after = world.replica('after', { onSpecChange: 'replace' });
  expect(handedOut(await after.take('u')).sandbox.url).toBe(first.sandbox.url);
  expect(after.storePoints.count('claim')).toBe(0);
});

test('[A-15] a hold that comes in while it is decided to replace keeps the sandbox, and costs no second hold', async () => {
  const world = new World();
  const old = world.replica('old', { onSpecChange: 'replace' });
  const first = handedOut(await old.take('u'));
  await old.store.release(first.sandbox.id, first.hold);
  await world.pass(LEASE_MS, old);
  const changed = world.replica('changed', { onSpecChange: 'replace', spec: 'spec-2' });
  const claim = changed.storePoints.hold('claim');
  const taking = changed.take('u');
  await claim.reached;
  await old.store.keepalive(first.sandbox.id, first.hold);
  claim.release();
  const { sandbox, hold } = handedOut(await taking);
  expect(sandbox.url).toBe(first.sandbox.url);
  expect([...(world.record('u')?.holds.keys() ?? [])].toSorted()).toEqual([first.hold, hold].toSorted());
});

test('[A-12] whoever gave up asks for a peer’s start no more', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const create = b.points.hold('create');
  const start = b.take('u');
  await create.reached;
  expect(await a.take('u', 0)).toMatchObject({ kind: 'starting' });
  await world.clock.advance(1_000);
  expect(a.turns.size).toBe(0);
  expect(a.storePoints.count('take')).toBeLessThan(4);
  expect(a.events).toContainEqual({ type: 'acquire-waits', sandbox: world.idOf('u'), owner: 'b' });
  create.release();
  handedOut(await start);
});

test('[C-01] a full fleet and a full user are told apart, with the limit and when to ask again', async () => {
  const fleet = new World({ maxSandboxes: 1 }).replica('a');
  handedOut(await fleet.take('u'));
  const full = { code: 'capacity_exhausted', retryAfterMs: 30_000, message: expect.stringContaining('All 1 ') };
  await expect(fleet.take('v')).rejects.toMatchObject(full);
  const user = new World({ maxPerUser: 1 }).replica('a');
  handedOut(await user.take('u'));
  const again = user.handouts.acquire({ userId: 'u', threadId: 'another' }, { gone: new AbortController().signal });
  const fullUser = {
    code: 'user_capacity_exhausted',
    retryAfterMs: 30_000,
    message: expect.stringContaining('has 1 '),
  };
  await expect(again).rejects.toMatchObject(fullUser);
});

test('[A-08] residue whose start is somebody else’s by now is given up at once', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const create = b.points.hold('create');
  void b.take('u').catch(() => undefined);
  await create.reached;
  const record = { ...world.record('u')!, owner: a.store.owner };
  const start = { record, fence: record.fence, residue: null, life: record.life };
  expect(await a.teardown.clearResidue(start, asContainerId('c'), 'stop')).toBe(false);
  create.release();
});
