import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const silent = (): BrokerError => new BrokerError('runtime_timeout', 'no answer');

/** A sandbox that nobody has held for the idle time, owned by a. */
async function idle(world: World, a: Replica): Promise<{ url: string | null; hold: number }> {
  const { sandbox, hold } = handedOut(await a.take('u'));
  await a.store.release(sandbox.id, hold);
  await world.pass(IDLE_MS, a);
  return { url: sandbox.url, hold };
}

const types = (replica: Replica): string[] => replica.events.map(({ type }) => type);

test.for(['condemn', 'confirm', 'remove'] as const)(
  '[T-02] [A-08] an acquire of another replica while a removal stands before %s: fresh or given back, never the doomed one',
  async (point) => {
    const world = new World();
    const [a, b] = [world.replica('a'), world.replica('b')];
    await idle(world, a);
    const doomed = world.engine.containers[0]!;
    const held = point === 'confirm' ? a.storePoints.hold('confirm') : a.points.hold(point);
    await a.reaper.pass();
    await held.reached;
    const taken = handedOut(await b.take('u'));
    held.release();
    await world.clock.advance(LEASE_MS);
    await Promise.all([a.tasks.drained(60_000), b.tasks.drained(60_000)]);
    const named = world.engine.containers.filter(({ id }) => id === world.record('u')?.container);
    expect(named.map(({ state, name }) => [state, name])).toEqual([['running', `sandbox-${world.idOf('u')}`]]);
    expect(taken.sandbox.url).toBe(`http://127.0.0.1:${named[0]!.port}`);
    expect(named[0]!.id).not.toBe(doomed.id);
    expect(world.engine.containers).toHaveLength(1);
  },
);

test.for(['acquire', 'keepalive'] as const)(
  '[T-02] a reap that was decided before an %s does nothing',
  async (call) => {
    const world = new World();
    const a = world.replica('a');
    const { hold } = await idle(world, a);
    const claim = a.storePoints.hold('claim');
    const pass = a.reaper.pass();
    await claim.reached;
    if (call === 'acquire') handedOut(await a.take('u'));
    else await a.store.keepalive(world.idOf('u'), hold as never);
    claim.release();
    await pass;
    await a.tasks.drained(60_000);
    expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
    expect(world.record('u')?.state).toBe('ready');
  },
);

test('[T-02] a reap that was decided before a takeover does nothing, although nobody holds it', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await idle(world, a);
  const claim = a.storePoints.hold('claim');
  const pass = a.reaper.pass();
  await claim.reached;
  const taken = handedOut(await b.take('u'));
  await b.store.release(taken.sandbox.id, taken.hold);
  claim.release();
  await pass;
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'b' });
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});

test('[T-18] a name is given back only by the call that took it', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  await idle(world, a);
  const { id } = world.engine.containers[0]!;
  const sandbox = world.idOf('u');
  await b.runtime.condemn(sandbox, id); // somebody else's call has the name
  const confirm = a.storePoints.hold('confirm');
  await a.reaper.pass();
  await confirm.reached;
  // The store comes back with a state in which the sandbox is ready.
  const record = world.record('u')!;
  world.database.put({ ...record, state: 'ready', owner: b.store.owner });
  confirm.release();
  await a.tasks.drained(60_000);
  expect(world.engine.get(id).name).toContain('condemned');
  expect(types(a)).toContain('removal-stopped');
});

test.for([true, false])(
  '[T-18] a name goes back to a container that somebody has (same life of the store: %s)',
  async (sameLife) => {
    const world = new World();
    const [a, b] = [world.replica('a'), world.replica('b')];
    await idle(world, a);
    const { id } = world.engine.containers[0]!;
    const confirm = a.storePoints.hold('confirm');
    await a.reaper.pass();
    await confirm.reached;
    const record = world.record('u')!;
    if (!sameLife) world.database.beginLife();
    world.database.put({ ...record, state: 'ready', owner: b.store.owner });
    confirm.release();
    await a.tasks.drained(60_000);
    expect(world.engine.get(id).state).toBe('running');
    expect(world.engine.get(id).name.includes('condemned')).toBe(!sameLife);
  },
);

test.for(['condemn', 'remove'] as const)(
  '[T-11] a removal whose %s does not answer is reported, not counted, and tried again with a growing pause',
  async (method) => {
    const world = new World();
    const a = world.replica('a');
    await idle(world, a);
    a.points.break(method, silent);
    await a.reaper.pass();
    await a.tasks.drained(60_000);
    expect(types(a)).toContain('removal-failed');
    expect(types(a)).not.toContain('removed');
    const tries: number[] = [];
    for (let passes = 0; passes < 20; passes += 1) {
      await world.clock.advance(LEASE_MS);
      const before = a.points.count(method);
      await a.reconciler.pass();
      await a.tasks.drained(60_000);
      if (a.points.count(method) > before) tries.push(passes);
    }
    const pauses = tries.slice(1).map((pass, index) => pass - tries[index]!);
    expect(pauses.length).toBeGreaterThan(1);
    expect(pauses).toEqual([...pauses].sort((x, y) => x - y));
    expect(pauses.at(-1)).toBeGreaterThan(pauses[0]!);
    a.points.repair(method);
    await world.clock.advance(600_000);
    await a.reconciler.pass();
    await a.tasks.drained(60_000);
    expect(world.engine.containers).toEqual([]);
    expect(types(a)).toContain('removed');
  },
);

test('[T-11] while a removal is stuck the identity can be acquired again at once', async () => {
  const world = new World();
  const a = world.replica('a');
  await idle(world, a);
  const stuck = a.points.hold('remove');
  await a.reaper.pass();
  await stuck.reached;
  expect(handedOut(await a.take('u', 0).then(() => a.take('u'))).sandbox.url).not.toBeNull();
  stuck.release();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
});

test('[T-12] one sandbox that cannot be removed stops no other', async () => {
  const world = new World();
  const a = world.replica('a');
  for (const user of ['u', 'v', 'w']) {
    const { sandbox, hold } = handedOut(await a.take(user));
    await a.store.release(sandbox.id, hold);
  }
  await world.pass(IDLE_MS, a);
  a.points.failNext('remove', silent());
  await a.reaper.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
});

test.for(['condemn', 'confirm', 'remove', 'drop'] as const)(
  '[T-10] a removal whose replica dies before %s is finished by another; no container and no record stays',
  async (point) => {
    const world = new World();
    const [a, b] = [world.replica('a'), world.replica('b')];
    await idle(world, a);
    if (point === 'confirm' || point === 'drop') a.storePoints.hold(point);
    else a.points.hold(point);
    await a.reaper.pass(); // and nothing is heard of it any more
    await world.clock.advance(2 * LEASE_MS);
    await b.renewal.pass();
    for (let pass = 0; pass < 3; pass += 1) {
      await b.reconciler.pass();
      await world.clock.advance(LEASE_MS);
      await b.renewal.pass();
    }
    await b.tasks.drained(60_000);
    expect(world.engine.containers).toEqual([]);
    expect(world.record('u')?.state ?? 'gone').toBe('gone');
  },
);

test('[A-19] a destroy while it is being started: the start ends, then it is destroyed, and nothing is left', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const start = a.points.hold('start');
  const taking = a.take('u');
  await start.reached;
  const destroying = b.destroy.run(world.idOf('u'));
  await world.clock.advance(1_000);
  expect(world.record('u')?.state).toBe('starting');
  start.release();
  handedOut(await taking);
  await world.clock.advance(1_000);
  expect(await destroying).toBe('gone');
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});

test('a destroy carried out late does not hit a newer container', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  const late = b.storePoints.hold('condemnByIntent');
  const first = b.destroy.run(world.idOf('u'));
  await late.reached;
  world.engine.kill(world.engine.containers[0]!.id);
  const fresh = handedOut(await a.take('u'));
  late.release();
  await world.clock.settle();
  const survivor = world.engine.containers.find(({ port }) => fresh.sandbox.url === `http://127.0.0.1:${port}`);
  expect(survivor).toBeDefined(); // the late step named the old container, and was refused
  await world.clock.advance(1_000);
  expect(await first).toBe('gone'); // the request itself then looks again, and destroys what there is
});

test.for(['no record', 'an unreadable record'] as const)(
  '[L-28] a destroy with %s removes the container under the name',
  async (what) => {
    const world = new World();
    const a = world.replica('a');
    handedOut(await a.take('u'));
    if (what === 'no record') world.database.remove(world.idOf('u'));
    else world.database.plant(world.idOf('u'), { v: 'x' } as never);
    expect(await a.destroy.run(world.idOf('u'))).toBe('gone');
    expect(world.engine.containers).toEqual([]);
    expect(world.record('u')?.state).toBe('gone');
  },
);

test('[S-02] at shutdown with "destroy" only what this replica started or handed out goes; a peer\'s and adopted ones stay', async () => {
  const world = new World();
  const [a, b] = [world.replica('a', { peers: false }), world.replica('b', { peers: false })];
  for (const user of ['mine', 'moved', 'adopted']) handedOut(await (user === 'adopted' ? b : a).take(user));
  handedOut(await b.take('moved'));
  world.database.remove(world.idOf('adopted'));
  await a.reconciler.pass();
  expect(world.record('adopted')?.owner).toBe('a');
  await a.shutdown.destroy();
  const left = ['mine', 'moved', 'adopted'].filter((user) => world.record(user)?.state === 'ready');
  expect(left).toEqual(['moved', 'adopted']);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running', 'running']);
});

test('[L-16] at shutdown with "keep" a peer adopts at once, holds kept', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const { hold } = handedOut(await a.take('u'));
  await b.reconciler.pass();
  expect(world.record('u')?.owner).toBe('a');
  await a.shutdown.keep();
  await b.reconciler.pass();
  expect(world.record('u')?.owner).toBe('b');
  expect([...(world.record('u')?.holds.keys() ?? [])]).toEqual([hold]);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});
