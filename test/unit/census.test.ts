import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { sandboxName } from '../../src/domain/names.ts';
import type { FakeContainer } from '../fakes/fake-engine.ts';
import { DEPLOYMENT, handedOut, type Replica, World } from '../support/world.ts';

/** A sandbox's container whose record the store has lost. */
function unrecorded(world: World, user: string, state: FakeContainer['state'] = 'running'): FakeContainer {
  const { engine, profile, noLabels } = world;
  const labels = { ...noLabels, profile: 'default', userId: user, threadId: 'thread' };
  const name = sandboxName('sandbox', world.idOf(user));
  const container = engine.add({ name, deployment: DEPLOYMENT, profile, labels });
  engine.run(container.id);
  container.state = state;
  return container;
}

const codeOf = (acquiring: Promise<unknown>): Promise<string> =>
  acquiring.then(
    () => 'ready',
    (error: BrokerError) => error.code,
  );

/** The store has begun a new life. */
function amnesia(settings: { readonly maxSandboxes?: number; readonly maxPerUser?: number }): [World, Replica] {
  const world = new World(settings);
  world.database.beginLife();
  return [world, world.replica('a')];
}

test('[C-07] a store that lost its keys does not admit twice the limit; whoever runs is let in', async () => {
  const [world, a] = amnesia({ maxSandboxes: 3 });
  for (const user of ['u', 'v', 'w']) unrecorded(world, user);
  expect(await codeOf(a.take('x'))).toBe('capacity_exhausted');
  for (const user of ['u', 'v', 'w']) expect(handedOut(await a.take(user)).origin).toBe('discovered');
  expect(world.engine.containers).toHaveLength(3);
});

test('[C-07] whoever runs does not wait behind others for room', async () => {
  const world = new World({ maxSandboxes: 2, waitTimeoutMs: 30_000 });
  const a = world.replica('a');
  handedOut(await a.take('held'));
  unrecorded(world, 'u');
  await a.reconciler.pass();
  const waiting = codeOf(a.take('x'));
  await world.clock.settle();
  expect(a.admission.waiting).toBe(1);
  expect(handedOut(await a.take('u')).origin).toBe('discovered');
  await world.clock.advance(30_000);
  expect(await waiting).toBe('capacity_exhausted');
});

test('[C-07] nor more than a user’s limit', async () => {
  const [world, a] = amnesia({ maxPerUser: 1 });
  unrecorded(world, 'u');
  const gone = new AbortController().signal;
  const second = a.handouts.acquire({ userId: 'u', threadId: 'another' }, { gone });
  expect(await codeOf(second)).toBe('user_capacity_exhausted');
  expect(await codeOf(a.take('v'))).toBe('ready');
});

test('[C-07] what has ended does not count; what was created or paused does, and what is condemned', async () => {
  const [world, a] = amnesia({ maxSandboxes: 4 });
  unrecorded(world, 'e', 'exited');
  unrecorded(world, 'd', 'dead');
  unrecorded(world, 'c', 'created');
  unrecorded(world, 'p', 'paused');
  const condemned = unrecorded(world, 'k');
  await a.runtime.condemn(world.idOf('k'), condemned.id);
  expect(await codeOf(a.take('x'))).toBe('ready');
  expect(await codeOf(a.take('y'))).toBe('capacity_exhausted');
});

test('[C-07] a spare does not count, nor one on its way out', async () => {
  const [world, a] = amnesia({ maxSandboxes: 1 });
  const about = { profile: world.profile, spec: 'spec-1', owner: a.store.owner };
  const spares = [await a.runtime.createSpare(about), await a.runtime.createSpare(about)];
  for (const { container } of spares) await a.runtime.start(container);
  await a.runtime.condemnSpare(spares[0]!);
  expect(await codeOf(a.take('x'))).toBe('ready');
});

test('[C-07] one list does for all who come at the same time, and for the rest of the life', async () => {
  const [world, a] = amnesia({ maxSandboxes: 10 });
  const b = world.replica('b');
  const all = await Promise.all(['u', 'v', 'w'].map((user) => a.take(user)));
  expect(all.map((answer) => handedOut(answer).origin)).toEqual(['created', 'created', 'created']);
  expect(a.points.count('list')).toBe(1);
  handedOut(await b.take('x'));
  expect(b.points.count('list')).toBe(0);
});

test('[C-07] while the engine cannot tell what runs nothing new is let in, and what is ready is handed out', async () => {
  const world = new World({ maxSandboxes: 10 });
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.beginLife();
  a.points.break('list', () => new BrokerError('runtime_timeout', 'no answer'));
  const { sandbox, hold } = handedOut(await a.take('u'));
  expect(await a.store.keepalive(sandbox.id, hold)).toMatchObject({ state: 'ready' });
  expect(await codeOf(a.take('v'))).toBe('runtime_unavailable');
  expect(world.engine.containers).toHaveLength(1);
  a.points.repair('list');
  expect(await codeOf(a.take('v'))).toBe('ready');
});

test('[C-07] another engine’s containers are nobody’s to count', async () => {
  const [world, a] = amnesia({ maxSandboxes: 1 });
  await a.engine.settle();
  world.engine.forgetMarks();
  await expect(a.engine.settle()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(await codeOf(a.take('u'))).toBe('runtime_unavailable');
  expect(a.points.count('list')).toBe(0);
});

test('[C-07] a life that begins while the containers are listed is counted anew', async () => {
  const [world, a] = amnesia({ maxSandboxes: 1 });
  const list = a.points.hold('list', 'after');
  const asking = codeOf(a.take('x'));
  await list.reached;
  unrecorded(world, 'u');
  world.database.beginLife();
  list.release();
  expect(await asking).toBe('capacity_exhausted');
  expect(a.points.count('list')).toBe(2);
});

test('[C-07] a store that never keeps its keys admits nothing, and says so', async () => {
  const [world, a] = amnesia({ maxSandboxes: 1 });
  const list = a.runtime.list.bind(a.runtime);
  a.runtime.list = () => {
    world.database.beginLife();
    return list();
  };
  expect(await codeOf(a.take('x'))).toBe('store_unavailable');
});

test('[C-07] each reconcile pass counts: what runs unrecorded, and no more what has ended', async () => {
  const [world, a] = amnesia({ maxSandboxes: 1 });
  const container = unrecorded(world, 'u');
  await a.reconciler.pass();
  expect(a.points.count('list')).toBe(1);
  expect(await codeOf(a.take('x'))).toBe('capacity_exhausted');
  expect(a.points.count('list')).toBe(1);
  world.engine.vanish(container.id);
  await a.reconciler.pass();
  expect(await codeOf(a.take('x'))).toBe('ready');
});

test('without a limit nothing is counted', async () => {
  const [, a] = amnesia({ maxSandboxes: 0 });
  await a.reconciler.pass();
  expect(await codeOf(a.take('x'))).toBe('ready');
  expect(a.storePoints.count('beginCensus') + a.storePoints.count('census')).toBe(0);
});
