import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { asOwnerId } from '../../src/domain/ids.ts';
import { MemorySpares } from '../../src/leases/memory-spares.ts';
import { handedOut, LEASE_MS, type Replica, World } from '../support/world.ts';

const never = new AbortController().signal;
const refill = async (...replicas: readonly Replica[]): Promise<void> => {
  for (const replica of replicas) {
    await replica.spares.pass(never);
    await replica.tasks.drained(60_000);
  }
};
const names = (world: World): string[] => world.engine.containers.map(({ name }) => name);
const failing = (): Error => new BrokerError('sandbox_start_failed', 'the engine is full');

test('[C-05] the pool is filled; an acquire takes a spare, which answers under the identity’s own name', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 2 });
  await refill(a);
  expect(names(world).every((name) => name.startsWith('sandbox-spare-'))).toBe(true);
  expect(a.spares.levels()).toEqual(new Map([['default', { ready: 2, wanted: 2 }]]));
  const first = handedOut(await a.take('u'));
  expect(first.origin).toBe('spare');
  expect(names(world)).toContain(`sandbox-${world.idOf('u')}`);
  expect(a.runtime.points.count('create')).toBe(0);
  expect(handedOut(await a.take('u')).origin).toBe('reused');
  expect(world.record('u')).toMatchObject({ verified: true, state: 'ready' });
  await refill(a);
  expect(names(world)).toHaveLength(3);
});

test('[C-05] the hold of a former spare is its own; one of an earlier container of its identity is lost', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  const earlier = handedOut(await a.take('u')).hold;
  world.engine.vanish(world.engine.containers[0]!.id);
  await a.reconciler.pass();
  await refill(a);
  const { origin, hold } = handedOut(await a.take('u'));
  expect(origin).toBe('spare');
  expect(await a.store.keepalive(world.idOf('u'), earlier)).toBe('hold_lost');
  expect(await a.store.keepalive(world.idOf('u'), hold)).toMatchObject({ state: 'ready' });
});

test('[C-05] of two replicas that want the last spare one gets it, and nobody shares a container', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { spares: 1 }), world.replica('b', { spares: 1 })];
  await refill(a);
  const both = (await Promise.all([a.take('u'), b.take('v')])).map(handedOut);
  expect(both.map(({ origin }) => origin).sort()).toEqual(['created', 'spare']);
  expect(new Set(both.map(({ sandbox }) => sandbox.url)).size).toBe(2);
});

test('[C-06] a spare that died in the pool is not handed out, and is removed', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 2 });
  await refill(a);
  const [oldest, other] = world.engine.containers;
  world.engine.kill(oldest!.id);
  const first = handedOut(await a.take('u'));
  expect(first.origin).toBe('spare');
  expect(world.record('u')?.container).toBe(other!.id);
  await a.tasks.drained(60_000);
  expect(names(world)).toEqual([`sandbox-${world.idOf('u')}`]);
});

test('[C-06] a spare that vanished from the engine is passed over', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  await refill(a);
  world.engine.vanish(world.engine.containers[0]!.id);
  expect(handedOut(await a.take('u')).origin).toBe('created');
  await refill(a);
  expect(a.spares.levels().get('default')).toEqual({ ready: 1, wanted: 1 });
});

test('[C-06] spares of an older spec are never handed out, and are replaced', async () => {
  const world = new World();
  const old = world.replica('old', { spares: 2 });
  await refill(old);
  const before = new Set(world.engine.containers.map(({ id }) => id));
  await old.shutdown.keep();
  const a = world.replica('a', { spares: 2, spec: 'spec-2' });
  expect(handedOut(await a.take('u')).origin).toBe('created');
  await refill(a);
  const spares = world.engine.containers.filter(({ name }) => name.startsWith('sandbox-spare-'));
  expect(spares).toHaveLength(2);
  expect(spares.some(({ id }) => before.has(id))).toBe(false);
});

test('[C-06] only one replica refills at a time; when it leaves, another one goes on', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { spares: 2 }), world.replica('b', { spares: 2 })];
  const creating = a.points.hold('createSpare');
  const filling = a.spares.pass(never);
  await creating.reached;
  await refill(b);
  expect(world.engine.containers).toHaveLength(0);
  creating.release();
  await filling;
  expect(world.engine.containers).toHaveLength(2);
  handedOut(await b.take('u'));
  await refill(b);
  expect(world.engine.containers).toHaveLength(2); // a has not left yet
  await a.shutdown.keep();
  await refill(b);
  expect(world.engine.containers).toHaveLength(3);
});

test('[C-06] a slow start keeps the pool: no peer makes a second one or removes the one under way', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { spares: 1 }), world.replica('b', { spares: 1 })];
  const starting = a.points.hold('waitReady');
  const filling = a.spares.pass(never);
  await starting.reached;
  const [under] = names(world);
  for (let step = 0; step < 9; step += 1) {
    await world.clock.advance(LEASE_MS / 3);
    await a.spares.stay();
    await refill(b);
  }
  expect(names(world)).toEqual([under]);
  starting.release();
  await filling;
  expect(a.spares.levels().get('default')).toEqual({ ready: 1, wanted: 1 });
});

test('[C-06] one that the pool does not know is removed once it was seen for a lease', async () => {
  const world = new World();
  const a = world.replica('a');
  const { container } = await a.runtime.createSpare({
    profile: world.profile,
    spec: 'spec-1',
    owner: asOwnerId('dead'),
  });
  await refill(a); // none is wanted, and none was seen
  expect(a.points.count('list')).toBe(0);
  await a.reconciler.pass();
  await refill(a);
  await refill(a);
  await world.clock.advance(LEASE_MS - 1);
  await refill(a);
  expect(world.engine.find(container)).toBeDefined();
  await world.clock.advance(1);
  await refill(a);
  expect(world.engine.containers).toEqual([]);
});

test('[C-05] a spare that was claimed, or has another name, is not removed as a spare', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  await refill(a);
  const spare = world.database.spares.waiting[0]!;
  const dedicate = a.points.hold('dedicate');
  const taking = a.take('u');
  await dedicate.reached;
  expect(await a.teardown.removeSpare(spare)).toBe('kept');
  expect(world.engine.get(spare.container).name).toBe(spare.name);
  dedicate.release();
  handedOut(await taking);
  Object.assign(world.database, { spares: new MemorySpares() });
  expect(await a.teardown.removeSpare(spare)).toBe('kept');
  expect(world.engine.get(spare.container).state).toBe('running');
});

test('[C-05] a start that fails is cleaned up, and tried again after a pause that grows', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  a.points.break('waitReady', failing);
  await refill(a);
  await refill(a);
  expect(a.points.count('createSpare')).toBe(1);
  expect(world.engine.containers).toEqual([]);
  expect(a.events.filter(({ type }) => type === 'spare-failed')).toHaveLength(1);
  await world.clock.advance(30_000);
  await refill(a);
  expect(a.points.count('createSpare')).toBe(2);
  await world.clock.advance(30_000);
  await refill(a);
  expect(a.points.count('createSpare')).toBe(2);
  a.points.repair('waitReady');
  await world.clock.advance(30_000);
  await refill(a);
  expect(a.spares.levels().get('default')).toEqual({ ready: 1, wanted: 1 });
  handedOut(await a.take('u'));
  a.points.failNext('waitReady', failing());
  await refill(a);
  await world.clock.advance(30_000);
  await refill(a);
  expect(a.spares.levels().get('default')).toEqual({ ready: 1, wanted: 1 });
});

test('[C-05] spares have what sandboxes leave of the capacity, and go when it is needed', async () => {
  const world = new World({ maxSandboxes: 3 });
  const a = world.replica('a', { spares: 3 });
  await refill(a);
  expect(world.engine.containers).toHaveLength(3);
  for (const user of ['u', 'v', 'w']) {
    expect(handedOut(await a.take(user)).origin).toBe('spare');
    await refill(a);
    expect(world.engine.containers).toHaveLength(3);
  }
  expect(a.spares.levels().get('default')).toEqual({ ready: 0, wanted: 3 });
});

test('[C-05] whoever waits for a sandbox goes before the pool', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  const start = a.points.hold('start');
  const waiting = a.take('u');
  await start.reached;
  const filling = a.spares.pass(never);
  await world.clock.advance(1_000);
  expect(a.points.count('createSpare')).toBe(0);
  start.release();
  await waiting;
  await world.clock.advance(1_000);
  await filling;
  expect(a.points.count('createSpare')).toBe(1);
});

test('[C-05] after the store lost its keys nobody takes a spare twice; those it forgot are replaced after a lease', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  await refill(a);
  const dedicate = a.points.hold('dedicate');
  const claiming = a.take('u');
  await dedicate.reached;
  Object.assign(world.database, { spares: new MemorySpares() });
  const b = world.replica('b', { spares: 1 });
  await refill(b);
  await world.clock.advance(LEASE_MS);
  await refill(b);
  await refill(b);
  dedicate.release();
  const first = handedOut(await claiming);
  const second = handedOut(await b.take('v'));
  expect(new Set([first.sandbox.url, second.sandbox.url]).size).toBe(2);
  for (const replica of [a, b]) await replica.tasks.drained(60_000);
  expect(names(world).filter((name) => name.includes('condemned'))).toEqual([]);
});

test('[C-05] a spare whose claimer died before it was renamed is removed after a lease', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { spares: 1 }), world.replica('b', { spares: 1 })];
  await refill(a);
  const [spare] = names(world);
  const dedicate = a.points.hold('dedicate');
  const taking = a.take('u');
  await dedicate.reached;
  await a.shutdown.keep();
  await refill(b);
  await refill(b);
  expect(names(world)).toContain(spare); // it may still be renamed
  await world.clock.advance(LEASE_MS);
  await refill(b);
  expect(names(world)).not.toContain(spare);
  dedicate.release();
  expect(handedOut(await taking).origin).toBe('spare'); // it woke up, found that one gone, and took the next
});

test('[A-11] also when the start had a residue to clear: both are removed', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  handedOut(await a.take('u'));
  await refill(a);
  world.engine.kill(world.engine.containers[0]!.id);
  const remove = a.points.hold('remove');
  a.points.failNext('dedicate', new BrokerError('runtime_timeout', 'no answer'));
  const taking = a.take('u');
  await remove.reached;
  remove.release();
  await expect(taking).rejects.toMatchObject({ code: 'runtime_timeout' });
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[C-05] a profile that wants no spares takes none', async () => {
  const world = new World();
  await refill(world.replica('a', { spares: 1 }));
  expect(handedOut(await world.replica('b').take('u')).origin).toBe('created');
});

test('[S-05] a replica that removes its sandboxes removes the spares it made, and no peer’s', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { spares: 1 }), world.replica('b', { spares: 2 })];
  await refill(a);
  await a.shutdown.keep();
  await refill(b);
  expect(world.engine.containers).toHaveLength(2);
  await b.shutdown.destroy();
  expect(world.engine.containers.map(({ labels }) => labels.owner)).toEqual([asOwnerId('a')]);
});

test('[C-05] the name was taken by another container meanwhile: that one is used, and the spare goes after a lease', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  await refill(a);
  const [spare] = names(world);
  const dedicate = a.points.hold('dedicate');
  const taking = a.take('u');
  await dedicate.reached;
  const { id: found } = world.engine.add({
    name: `sandbox-${world.idOf('u')}`,
    deployment: 'world',
    profile: world.profile,
    labels: world.noLabels,
  });
  world.engine.run(found);
  dedicate.release();
  expect(handedOut(await taking).origin).toBe('discovered');
  await refill(a);
  await refill(a);
  await world.clock.advance(LEASE_MS);
  await refill(a);
  expect(names(world)).not.toContain(spare);
});

test('[A-11] an engine that cannot rename: the start fails and leaves neither spare nor lease', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  await refill(a);
  a.points.failNext('dedicate', new BrokerError('runtime_timeout', 'no answer'));
  await expect(a.take('u')).rejects.toMatchObject({ code: 'runtime_timeout' });
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});
