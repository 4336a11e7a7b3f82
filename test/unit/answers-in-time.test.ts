import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import type { ContainerId } from '../../src/domain/ids.ts';
import { Sandboxes } from '../../src/service/sandboxes.ts';
import { handedOut, type Replica, World } from '../support/world.ts';

test('[S-01] at the end of the drain whoever waits in line for a slot is told 503', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 30_000 });
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const waiting = a.take('v').catch((error: unknown) => error);
  await world.clock.advance(1_000);
  a.drained.abort();
  expect(await waiting).toMatchObject({ code: 'shutting_down' });
});

/** The container of the sandbox of "u", which another replica is removing. */
async function beingRemoved(world: World, { take, store, runtime }: Replica): Promise<ContainerId> {
  const { hold } = handedOut(await take('u'));
  await store.release(world.idOf('u'), hold);
  const { id } = world.engine.containers[0]!;
  await runtime.condemn(world.idOf('u'), id);
  return id;
}

test('[A-12] whoever met a removal, and then the start that follows it, is answered 202 when its time is over', async () => {
  const world = new World();
  const a = world.replica('a');
  const id = await beingRemoved(world, a);
  const ready = a.points.hold('waitReady');
  let answered: unknown = null;
  const answer = a.take('u', 5_000).then((outcome) => {
    answered = outcome;
  });
  await world.clock.advance(1_000);
  world.engine.vanish(id); // its removal ends; the acquire starts anew
  await world.clock.advance(100);
  await ready.reached;
  await world.clock.advance(60_000);
  expect(answered).toMatchObject({ kind: 'starting' });
  ready.release();
  await answer;
});

test('[A-12] whoever has waited for a removal that ends after its time is told so, and does not wait for a start', async () => {
  const world = new World();
  const a = world.replica('a');
  const id = await beingRemoved(world, a);
  let answered: unknown = null;
  void a.take('u', 5_000).catch((error: unknown) => {
    answered = error;
  });
  await world.clock.advance(4_000);
  const look = a.points.hold('look');
  await world.clock.advance(2_000);
  await look.reached;
  a.points.hold('waitReady');
  world.engine.vanish(id);
  look.release();
  await world.clock.advance(1_000);
  expect(answered).toMatchObject({ code: 'sandbox_unsettled' });
});

test('[A-02] of several that do not wait for a sandbox that is ready, each is handed it', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const kinds = (await Promise.all([0, 0, 0, 0].map((ms) => a.take('u', ms)))).map(
    ({ kind, sandbox }) => `${kind} ${sandbox.state}`,
  );
  expect(kinds).toEqual(Array(4).fill('ready active'));
});

test('[A-19] a destruction that waits for a start asks the engine nothing meanwhile', async () => {
  const world = new World();
  const a = world.replica('a');
  const pull = a.points.hold('ensureImage');
  void a.take('u').catch(() => undefined);
  await pull.reached;
  const before = a.points.count('look');
  void a.destroy.run(world.idOf('u'));
  await world.clock.advance(9_000);
  expect(a.points.count('look') - before).toBeLessThan(20);
});

/** A service that answers a destruction after ten seconds; and all that was told of failures. */
function serviceOf(world: World, { store, destroy, tasks, events }: Replica) {
  const emit = (event: BrokerEvent): void => void events.push(event);
  const waits = { idleMs: 600_000, destroyWaitMs: 10_000 };
  const service = new Sandboxes({ store, destroy, tasks, clock: world.clock, emit, ...waits } as never);
  return { service, failures: () => events.filter((event) => 'message' in event) };
}

test('a destruction that goes on in the background and fails there is told in the log', async () => {
  const world = new World();
  const a = world.replica('a');
  const ready = a.points.hold('waitReady');
  void a.take('u').catch(() => undefined);
  await ready.reached;
  const { service, failures } = serviceOf(world, a);
  const answer = service.destroy(world.idOf('u'));
  await world.clock.advance(10_000);
  expect(await answer).toBe('removing');
  a.storePoints.failNext('read', new BrokerError('store_unavailable', 'no connection'));
  await world.clock.advance(1_000);
  ready.release();
  await world.clock.advance(200_000);
  expect(world.engine.containers.length).toBe(1); // it is not being removed
  expect(failures()).not.toEqual([]);
});

test('[A-19] a destruction that gives up, since the sandbox is still being started, is told in the log', async () => {
  const world = new World();
  const a = world.replica('a');
  const pull = a.points.hold('ensureImage'); // a slow pull that keeps moving keeps its lease
  void a.take('u').catch(() => undefined);
  await pull.reached;
  const { service, failures } = serviceOf(world, a);
  const answer = service.destroy(world.idOf('u'));
  await world.clock.advance(10_000);
  expect(await answer).toBe('removing');
  await world.pass(300_000, a);
  pull.release();
  await world.clock.advance(1_000);
  expect(world.record('u')?.state).toBe('ready'); // it is not being removed
  expect(failures()).not.toEqual([]);
});
