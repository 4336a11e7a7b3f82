import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const down = (): BrokerError => new BrokerError('store_unavailable', 'no connection');

test('[T-01] a sandbox whose activation was carried out without a reply is reaped when it is idle', async () => {
  const world = new World();
  const a = world.replica('a');
  a.storePoints.failNext('activate', down(), 'after');
  await expect(a.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'a' });
  for (let passed = 0; passed < 3 * (IDLE_MS + LEASE_MS); passed += LEASE_MS) {
    await world.pass(LEASE_MS, a);
    await a.reconciler.pass();
    await a.reaper.pass();
    await a.tasks.drained(60_000);
  }
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state ?? 'gone').toBe('gone');
});

const never = new AbortController().signal;

test('[A-11] [A-12] a caller that does not wait and meets a dead spare leaves no start that nobody carries on', async () => {
  const world = new World({ maxSandboxes: 1 });
  const [a, b] = [world.replica('a', { spares: 1 }), world.replica('b')];
  await a.spares.pass(never);
  world.engine.kill(world.engine.containers[0]!.id);
  await a.take('u', 0).catch(() => undefined);
  await a.tasks.drained(60_000);
  // the replica lives on; nobody asks it again for this one
  for (let passed = 0; passed < 60 * LEASE_MS; passed += LEASE_MS) {
    await world.pass(LEASE_MS, a, b);
    await a.reconciler.pass();
    await b.reconciler.pass();
    await a.tasks.drained(60_000);
  }
  expect(a.turns.size).toBe(0); // no acquire is under way
  expect(world.record('u')?.state).not.toBe('starting');
});

async function failed(replica: Replica, user: string): Promise<void> {
  for (const method of ['activate', 'claim', 'release'] as const) replica.storePoints.break(method, down);
  await expect(replica.take(user)).rejects.toMatchObject({ code: 'store_unavailable' });
  for (const method of ['activate', 'claim', 'release'] as const) replica.storePoints.repair(method);
}

test('[L-28] [A-05] a record that cannot be read stops neither the renewal pass nor the clean-up of another failed start', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(a, 'u');
  await failed(a, 'v');
  world.database.plant(world.idOf('u'), { v: '1' });
  const failures: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    await a.renewal.pass().catch(({ code }: BrokerError) => failures.push(code));
    await a.tasks.drained(60_000);
    await world.clock.advance(LEASE_MS / 3);
  }
  expect(failures).toEqual([]);
  expect(world.record('v')?.state).toBe('gone');
});

/** A replica whose profile has changed since the sandbox of "u", which nobody holds, was made. */
async function wantsAnother(world: World): Promise<Replica> {
  const old = world.replica('a', { onSpecChange: 'replace', spec: 'spec-1' });
  const { sandbox, hold } = handedOut(await old.take('u'));
  await old.store.release(sandbox.id, hold);
  await world.clock.advance(1_000);
  return world.replica('b', { onSpecChange: 'replace', spec: 'spec-2' });
}

test('[A-15] an acquire that cannot claim what it would replace leaves no hold behind', async () => {
  const world = new World();
  const b = await wantsAnother(world);
  b.storePoints.failNext('claim', new BrokerError('store_unavailable', 'Command timed out'));
  await expect(b.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.record('u')?.holds.size).toBe(0);
});

test('[A-15] a caller that does not wait is told that its sandbox is started, not that another replica changes it', async () => {
  const world = new World();
  const b = await wantsAnother(world);
  const told = await b.take('u', 0).then(
    ({ kind }) => kind,
    ({ message }: Error) => message,
  );
  expect(told).toBe('starting');
});

test('[S-02] with "destroy" a start that goes on after its lease was claimed leaves no container behind', async () => {
  const world = new World();
  const a = world.replica('a', { peers: false });
  const pull = a.points.hold('ensureImage');
  const answer = a.take('u').catch((error: unknown) => error);
  await pull.reached;
  a.drained.abort(); // as Broker#stop does
  await a.shutdown.destroy();
  pull.release(); // the image is there at last; the process goes on for "finish removals"
  await answer;
  await a.tasks.drained(60_000);
  expect(world.record('u')?.state ?? 'gone').toBe('gone');
  expect(world.engine.containers.map(({ name, state }) => `${name} ${state}`)).toEqual([]);
});
