import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, LEASE_MS, World } from '../support/world.ts';

const down = (): BrokerError => new BrokerError('store_unavailable', 'no connection');
const states = (world: World) => world.engine.containers.map(({ state }) => state);

test('[S-02] with "destroy" a start under way is ended too, with what it has made by then', async () => {
  const world = new World();
  const a = world.replica('a');
  const ready = a.points.hold('waitReady');
  const answer = a.take('u').catch((error: unknown) => error);
  await ready.reached;
  expect(states(world)).toEqual(['running']);
  await a.shutdown.destroy();
  expect(states(world)).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
  ready.release();
  await world.clock.advance(1_000);
  await answer;
});

test('[S-02] with "destroy" a start that has made nothing leaves no record that waits for it', async () => {
  const world = new World();
  const a = world.replica('a');
  const create = a.points.hold('create');
  void a.take('u').catch(() => undefined);
  await create.reached;
  await a.shutdown.destroy();
  expect(world.record('u')?.state).toBe('gone');
});

test('[S-02] with "destroy" one that cannot be claimed is reported and stops no other; the rest is handed over', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  for (const user of ['u', 'v']) handedOut(await a.take(user));
  a.storePoints.failNext('claim', down());
  await a.shutdown.destroy();
  expect(a.events.filter(({ type }) => type === 'removal-failed')).toMatchObject([
    { reason: 'shutdown', message: 'no connection', sandbox: world.idOf('u') },
  ]);
  expect(states(world)).toEqual(['running']);
  expect(world.record('v')?.state).toBe('gone');
  await b.reconciler.pass();
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'b' });
});

test('[S-02] with "destroy" what a peer has taken since is left to it', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  handedOut(await b.take('u'));
  await a.shutdown.destroy();
  expect(states(world)).toEqual(['running']);
  expect(world.record('u')?.owner).toBe('b');
  expect(a.events.map(({ type }) => type)).not.toContain('removal-failed');
});

test('[S-02] with "keep" only what may still be acted on is handed over', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  await world.clock.advance(LEASE_MS);
  await a.shutdown.keep();
  expect(a.tracked.size).toBe(0);
  a.storePoints.failNext('handover', down());
  await expect(a.shutdown.keep()).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('[T-01] a reaper that is stopped claims nothing more', async () => {
  const world = new World({ idleMs: 1_000 });
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.clock.advance(1_000);
  await a.reaper.pass(AbortSignal.abort());
  expect(world.record('u')?.state).toBe('ready');
  await a.reaper.pass();
  await a.tasks.drained(60_000);
  expect(states(world)).toEqual([]);
});

test('[T-02] a reaper claims nothing that is held, starting, or idle for too short a time', async () => {
  const world = new World({ idleMs: 1_000 });
  const a = world.replica('a');
  const { sandbox, hold } = handedOut(await a.take('u'));
  const create = a.points.hold('create');
  void a.take('v').catch(() => undefined);
  await create.reached;
  await world.clock.advance(1_000);
  await a.reaper.pass();
  await a.store.release(sandbox.id, hold);
  await world.clock.advance(999);
  await a.reaper.pass();
  expect(a.storePoints.count('claim')).toBe(0);
  await world.clock.advance(1);
  const read = a.storePoints.hold('readMany', 'after');
  const pass = a.reaper.pass();
  await read.reached;
  a.tracked.forget(sandbox.id, world.record('u')!.fence); // its lease was lost meanwhile
  read.release();
  await pass;
  expect(a.storePoints.count('claim')).toBe(0);
  create.release();
});

test.for(['ready', 'found', 'restarted'] as const)(
  '[S-02] with "destroy" what was adopted and handed out since goes as well: %s',
  async (how) => {
    const world = new World();
    const [a, b] = [world.replica('a', { peers: false }), world.replica('b', { peers: false })];
    handedOut(await b.take('u'));
    world.database.remove(world.idOf('u'));
    if (how !== 'found') await a.reconciler.pass(); // adopted
    if (how === 'restarted') world.engine.kill(world.engine.containers[0]!.id);
    handedOut(await a.take('u'));
    await a.tasks.drained(60_000);
    await a.shutdown.destroy();
    expect(states(world)).toEqual([]);
  },
);
