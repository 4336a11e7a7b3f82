import { afterEach, expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, type Replica, World } from '../support/world.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Follows the engine's events until the test is over; resolves once the gap before them is closed. */
async function follow(world: World, replica: Replica): Promise<{ readonly ended: Promise<unknown> }> {
  const stopping = new AbortController();
  const ended = replica.liveness.follow(stopping.signal).catch((error: unknown) => error);
  stops.push(async () => {
    stopping.abort();
    await ended;
  });
  await world.clock.settle();
  expect(replica.liveness.current).toBe(true);
  return { ended };
}

const calls = ({ points }: Replica): number =>
  (['look', 'list', 'create', 'start', 'waitReady', 'postMortem'] as const).reduce(
    (sum, name) => sum + points.count(name),
    0,
  );

test('[A-02] a re-acquire by any replica makes no container call, and gets a hold of its own', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await follow(world, a);
  await follow(world, b);
  const first = handedOut(await a.take('u'));
  await world.clock.settle();
  const before = [calls(a), calls(b)];
  const again = [handedOut(await b.take('u')), handedOut(await a.take('u'))];
  expect([calls(a), calls(b)]).toEqual(before);
  expect(again.map(({ sandbox }) => sandbox.url)).toEqual([first.sandbox.url, first.sandbox.url]);
  expect(new Set([first.hold, ...again.map(({ hold }) => hold)]).size).toBe(3);
});

test('[A-02] what another life of the store wrote is looked at, although it is known to run', async () => {
  const world = new World();
  const a = world.replica('a');
  await follow(world, a);
  handedOut(await a.take('u'));
  world.database.beginLife();
  const before = a.points.count('look');
  handedOut(await a.take('u'));
  expect(a.points.count('look')).toBe(before + 1);
});

test.for(['ends', 'is removed by somebody', 'is paused', 'is condemned'] as const)(
  'a container that %s is not known to run any more',
  async (what) => {
    const world = new World();
    const a = world.replica('a');
    await follow(world, a);
    handedOut(await a.take('u'));
    await world.clock.settle();
    const { id } = world.engine.containers[0]!;
    expect(a.liveness.urlOf(id)).not.toBeNull();
    if (what === 'ends') world.engine.kill(id);
    if (what === 'is removed by somebody') world.engine.vanish(id);
    if (what === 'is paused') world.engine.pause(id);
    if (what === 'is condemned') await a.runtime.condemn(world.idOf('u'), id);
    expect(a.liveness.urlOf(id)).toBeNull();
    await world.clock.settle();
    expect(a.liveness.urlOf(id)).toBeNull();
  },
);

test('[R-18] a container that ends by itself is noticed without being asked, and why is told', async () => {
  const world = new World();
  const a = world.replica('a');
  await follow(world, a);
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id, { exitCode: 137, reason: 'out of memory', logTail: 'last words' });
  await world.clock.settle();
  expect(world.record('u')).toMatchObject({
    state: 'gone',
    previous: { reason: 'out of memory', exitCode: 137, logTail: 'last words' },
  });
  expect(a.events.map(({ type }) => type)).toContain('ended');
  expect(handedOut(await a.take('u'))).toMatchObject({ origin: 'created', previous: { exitCode: 137 } });
});

test('[R-18] only the owner says so; a removal under way is not taken for an end', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await follow(world, a);
  await follow(world, b);
  handedOut(await a.take('u'));
  expect(await b.destroy.run(world.idOf('u'))).toBe('gone');
  await world.clock.settle();
  for (const { events } of [a, b]) expect(events.map(({ type }) => type)).not.toContain('ended');
  expect(world.record('u')).toMatchObject({ state: 'gone', previous: null });
});

test('[R-18] a stream that breaks is opened anew, and a list closes the gap', async () => {
  const world = new World();
  const a = world.replica('a');
  const first = await follow(world, a);
  handedOut(await a.take('u'));
  a.runtime.breakStream(new BrokerError('runtime_unavailable', 'broke off'));
  expect(await first.ended).toMatchObject({ code: 'runtime_unavailable' });
  const { id } = world.engine.containers[0]!;
  expect(a.liveness.urlOf(id)).toBeNull(); // without a stream nothing is known
  world.engine.kill(id, { exitCode: 5 });
  await world.clock.settle();
  expect(world.record('u')?.state).toBe('ready');
  await follow(world, a);
  await world.clock.settle();
  expect(world.record('u')).toMatchObject({ state: 'gone', previous: { exitCode: 5 } });
});

test('[R-18] a gap that cannot be closed ends the stream, and nothing is known', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('list', new BrokerError('runtime_timeout', 'no answer'));
  await expect(a.liveness.follow(new AbortController().signal)).rejects.toMatchObject({ code: 'runtime_timeout' });
  expect(a.liveness.current).toBe(false);
});

test('[R-18] a stream that has silently died is noticed by the next list', async () => {
  const world = new World();
  const a = world.replica('a');
  const { ended } = await follow(world, a);
  handedOut(await a.take('u'));
  await world.clock.settle();
  Object.assign(world.engine.containers[0]!, { state: 'exited', port: null }); // and no event says so
  await a.reconciler.pass();
  expect(await ended).toMatchObject({ code: 'runtime_unavailable' });
});

test('[R-07] a container that came back under another port is known under the new one', async () => {
  const world = new World();
  const a = world.replica('a');
  const b = world.replica('b');
  await follow(world, b);
  handedOut(await a.take('u'));
  await world.clock.settle();
  const { id } = world.engine.containers[0]!;
  world.engine.kill(id);
  world.engine.run(id);
  await world.clock.settle();
  const { port } = world.engine.get(id);
  expect(b.liveness.urlOf(id)).toBe(`http://127.0.0.1:${port}`);
  expect(handedOut(await b.take('u')).sandbox.url).toBe(`http://127.0.0.1:${port}`);
});

test('an answer that an event has overtaken is not believed', async () => {
  const world = new World();
  const a = world.replica('a');
  await follow(world, a);
  const look = a.points.hold('look', 'after'); // the look that the start asks for
  const { id } = world.engine.add({
    name: `sandbox-${world.idOf('u')}`,
    deployment: 'world',
    profile: null,
    labels: world.noLabels,
  });
  world.engine.run(id);
  await look.reached;
  world.engine.pause(id);
  look.release();
  await world.clock.settle();
  expect(a.liveness.urlOf(id)).toBeNull();
});

test.for([
  [100, 100],
  [2_500, 1_000],
] as const)(
  '[R-18] an end that the list shows %d ms after the engine has told it is noticed soon after',
  async ([late, soon]) => {
    const world = new World();
    const a = world.replica('a');
    await follow(world, a);
    handedOut(await a.take('u'));
    await world.clock.settle();
    const container = world.engine.containers[0]!;
    world.engine.tell(container, 'ended', 137);
    await world.clock.advance(late);
    expect(world.record('u')?.state).toBe('ready');
    Object.assign(container, { state: 'exited', port: null });
    await world.clock.advance(soon);
    expect(world.record('u')).toMatchObject({ state: 'gone' });
  },
);

test('[R-18] the exit code of a container that is removed at once is told', async () => {
  const world = new World();
  const a = world.replica('a');
  await follow(world, a);
  handedOut(await a.take('u'));
  await world.clock.settle();
  const container = world.engine.containers[0]!;
  world.engine.tell(container, 'ended', 137);
  await world.clock.settle(); // looked at, and not seen to have ended yet
  container.state = 'exited';
  world.engine.vanish(container.id);
  await world.clock.settle();
  expect(world.record('u')?.previous).toMatchObject({ exitCode: 137 });
});
