import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const silent = (): Error => new BrokerError('runtime_timeout', 'no answer');

/** A replica that has claimed the removal and is heard of no more, before it condemned. */
async function claimedBy(world: World, replica: Replica): Promise<void> {
  const { sandbox, hold } = handedOut(await replica.take('u'));
  await replica.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, replica);
  replica.points.hold('condemn');
  await replica.reaper.pass();
  await world.clock.settle();
  expect(world.record('u')?.state).toBe('destroying');
}

test('[A-19] nothing there: gone, and nothing is written', async () => {
  const world = new World();
  const a = world.replica('a');
  expect(await a.destroy.run(world.idOf('u'))).toBe('gone');
  expect(world.record('u')).toBeNull();
});

test('[A-19] a removal under way is waited for, and finished once its lease has expired', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await claimedBy(world, a);
  const outcome = b.destroy.run(world.idOf('u'));
  await world.clock.advance(LEASE_MS - 1_000);
  expect(world.engine.containers).toHaveLength(1);
  expect(world.record('u')?.owner).toBe('a');
  await world.clock.advance(1_000);
  expect(await outcome).toBe('gone');
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});

test('[A-19] a removal that goes on and on has an end for whoever waits', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const start = a.points.hold('create');
  world.database.remove(world.idOf('u'));
  world.engine.vanish(world.engine.containers[0]!.id);
  void a.take('u').catch(() => undefined);
  await start.reached;
  let outcome = '';
  void b.destroy.run(world.idOf('u')).then((said) => {
    outcome = said;
  });
  const patience = world.settings.startTimeoutMs + LEASE_MS;
  await world.pass(patience - 1_000, a); // the start is renewed all the time
  expect(outcome).toBe('');
  await world.pass(1_100, a);
  expect(outcome).toBe('unfinished');
  start.release();
});

test('[A-19] a container whose removal fails is not told as gone', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  a.points.failNext('remove', silent());
  expect(await a.destroy.run(world.idOf('u'))).toBe('unfinished');
  expect(world.engine.containers).toHaveLength(1);
});

test('[A-19] an engine that cannot say what there is: the error is told, and nothing is written', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  a.points.failNext('look', silent());
  await expect(a.destroy.run(world.idOf('u'))).rejects.toMatchObject({ code: 'runtime_timeout' });
  a.points.failNext('look', new Error('odd'));
  await expect(a.destroy.run(world.idOf('u'))).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(world.record('u')).toBeNull();
  expect(world.engine.containers).toHaveLength(1);
});

test('[A-19] another engine than the deployment’s: refused', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  world.engine.forgetMarks();
  const b = world.replica('b');
  await expect(b.destroy.run(world.idOf('u'))).rejects.toMatchObject({ code: 'runtime_unavailable' });
});

test('[A-19] an expired start is taken over, with the container that holds its name', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  a.storePoints.hold('activate');
  void a.take('u').catch(() => undefined); // and nothing is heard of it any more
  await world.clock.settle();
  const outcome = b.destroy.run(world.idOf('u'));
  await world.clock.advance(LEASE_MS + 1_000);
  expect(await outcome).toBe('gone');
  expect(world.engine.containers).toEqual([]);
});

test('[A-19] a sandbox that a removal gave back is destroyed at the next look', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const ready = world.record('u')!;
  const condemn = b.points.hold('condemn', 'after');
  const outcome = b.destroy.run(world.idOf('u'));
  await condemn.reached;
  world.database.put(ready); // somebody has it again
  condemn.release();
  await world.clock.advance(1_000);
  expect(await outcome).toBe('gone');
  expect(world.engine.containers).toEqual([]);
  expect(b.events.filter(({ type }) => type === 'removal-stopped')).toMatchObject([{ because: 'named' }]);
});

test('[A-19] the store cannot answer: that is told, and nothing is touched', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  a.storePoints.failNext('read', new BrokerError('store_unavailable', 'no connection'));
  await expect(a.destroy.run(world.idOf('u'))).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.record('u')?.state).toBe('ready');
});

test('[A-19] a container that lost its name is destroyed all the same: its record names it', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  await a.runtime.condemn(world.idOf('u'), world.record('u')!.container!);
  expect(await a.destroy.run(world.idOf('u'))).toBe('gone');
  expect(world.engine.containers).toEqual([]);
});

test('[A-19] one that was started anew while the request was on its way is found and destroyed, too', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const late = b.storePoints.hold('condemnByIntent');
  const outcome = b.destroy.run(world.idOf('u'));
  await late.reached;
  world.engine.kill(world.engine.containers[0]!.id);
  handedOut(await a.take('u'));
  late.release();
  await world.clock.advance(1_000);
  expect(await outcome).toBe('gone');
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[A-19] what is started after a request saw nothing at all is not its matter', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const late = b.storePoints.hold('condemnByIntent');
  const outcome = b.destroy.run(world.idOf('u')); // saw neither record nor container
  await late.reached;
  handedOut(await a.take('u'));
  late.release();
  expect(await outcome).toBe('gone'); // as it was when it was asked
  expect(world.engine.containers).toHaveLength(1);
});
