import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { eventually } from '../support/docker.ts';
import {
  acquired,
  answers,
  CREATE,
  DURABLE,
  deeds,
  type Fleet,
  failures,
  LEASE_MS,
  LIST,
  type Proxied,
  RENAME,
  SLACK_MS,
  START,
  useFleets,
  watch,
} from '../support/fleet.ts';

const { openFleet } = useFleets();

let fleet: Fleet;
let a: Proxied;
let b: Proxied;
beforeAll(async () => {
  fleet = await openFleet({ settings: { idle: { timeout: '3s' } }, redis: DURABLE });
  [a, b] = await Promise.all([fleet.joinThroughProxy(), fleet.joinThroughProxy()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** An acquire that is at the start of its container when the store is killed; resolves once it was refused. */
async function refusedBetweenTakeAndActivate(who: string): Promise<{ id: string; container: string }> {
  const id = fleet.idOf(person(who));
  await eventually(async () => (await a.replica.api.get(id)).status === 404);
  const start = a.proxy.fault(START, { kind: 'hold' });
  const asked = a.replica.api.acquire(person(who));
  await start.reached;
  await fleet.redis.stop();
  start.lift();
  const { status, body } = await asked;
  expect(status).toBe(503);
  expect(body.code).toBe('store_unavailable');
  expect(body.url).toBeUndefined();
  return { id, container: await fleet.containerOf(id) };
}

test('[A-05] the store is down: 503 from every replica, and no container is made (real)', async () => {
  await fleet.redis.stop();
  for (const { replica, proxy } of [a, b]) {
    const { status, headers, body } = await replica.api.acquire(person('down'));
    expect(status).toBe(503);
    expect(body).toMatchObject({ code: 'store_unavailable', retryable: true });
    expect(headers['retry-after']).toMatch(/^\d+$/);
    expect(proxy.count(CREATE)).toBe(0);
    expect((await replica.api.readyz()).status, 'the load balancer is not emptied').toBe(200);
  }
  expect(await fleet.containers()).toEqual([]);
  await fleet.redis.start();
  expect(await answers((await acquired(b.replica, person('down'))).url)).toBe(true);
});

test('[A-05] the store dies between take and activate and comes back with the record: refused, and removed in time (real)', async () => {
  const { id } = await refusedBetweenTakeAndActivate('recorded');
  await fleet.redis.start();
  const backAt = performance.now();
  expect(await fleet.record(id)).toMatchObject({ state: 'starting', container: '' });
  await eventually(async () => (await fleet.containersOf(id)).length === 0, 2 * LEASE_MS + 500 + SLACK_MS);
  expect(performance.now() - backAt).toBeLessThan(2 * LEASE_MS + 500 + SLACK_MS);
  expect((await b.replica.api.get(id)).status).toBe(404);
  const again = await acquired(b.replica, person('recorded'));
  expect(again).toMatchObject({ id, origin: 'created', holds: 1 });
  expect(await answers(again.url)).toBe(true);
});

test('[A-05] the store dies between take and activate and comes back empty: refused, and adopted like any other (real)', async () => {
  const { id, container } = await refusedBetweenTakeAndActivate('forgotten');
  await rm(join(fleet.redis.directory, 'appendonlydir'), { recursive: true });
  await fleet.redis.start();
  expect(await fleet.record(id)).toEqual({});
  await eventually(async () => (await fleet.record(id)).state === 'ready', 2 * LEASE_MS + SLACK_MS);
  await eventually(async () => deeds(a.replica, b.replica).includes(`adopted ${id}`));
  const { status, body } = await b.replica.api.acquire(person('forgotten'));
  expect(status).toBe(200);
  expect(body).toMatchObject({ id, origin: 'reused', holds: 2 });
  expect(await fleet.containersOf(id)).toEqual([container]);
  expect(await answers(body.url)).toBe(true);
});

test('[T-14] the store cannot answer, also between two steps of one pass: nothing is removed, adopted or forgotten (real)', async () => {
  const dying = await acquired(b.replica, person('dying'));
  const held = await acquired(b.replica, person('held'));
  const idle = await acquired(a.replica, person('idle'));
  const names = [dying, held, idle].map(({ id }) => id);
  const before = await Promise.all(names.map((id) => fleet.containersOf(id)));
  // A teardown between its claim and its confirmation, and a reconcile between its list and its read.
  const rename = b.proxy.fault(RENAME, { kind: 'hold' });
  const destroyed = b.replica.api.destroy(dying.id);
  await rename.reached;
  const list = a.proxy.fault(LIST, { kind: 'hold' }, 1);
  await list.reached;
  await a.replica.api.release(idle);
  await eventually(async () => deeds(b.replica).includes(`claimed ${dying.id}`));
  fleet.redis.signal('SIGSTOP');
  const done = deeds(a.replica, b.replica);
  // Once no lease is trusted any more, the reaper has nothing to ask for.
  const failed = [
    failures(a.replica, 'idle', 1),
    ...['renewal', 'reconcile'].map((loop) => failures(a.replica, loop, 3)),
    ...['renewal', 'reconcile'].map((loop) => failures(b.replica, loop, 3)),
  ];
  list.lift();
  rename.lift();
  expect((await destroyed).status).toBe(202);
  await Promise.all(failed);
  expect((await a.replica.api.get(held.id)).body.code).toBe('store_unavailable');
  expect(deeds(a.replica, b.replica)).toEqual(done);
  expect(await Promise.all(names.map((id) => fleet.containersOf(id)))).toEqual(before);
  expect(await Promise.all([held.url, idle.url, dying.url].map(answers))).toEqual([true, true, true]);

  fleet.redis.signal('SIGCONT');
  await eventually(async () => (await fleet.containersOf(dying.id)).length === 0, 20_000);
  await watch(a.replica, LEASE_MS + 1_000);
  for (const [n, id] of names.slice(1).entries()) expect(await fleet.containersOf(id)).toEqual(before[n + 1]);
  const kept = await eventually(async () => {
    const answer = await a.replica.api.keepalive(held.id, held.holdId);
    return answer.status === 200 && answer.body;
  });
  expect(kept).toMatchObject({ state: 'active', url: held.url });
  expect((await b.replica.api.get(idle.id)).body).toMatchObject({ state: 'active', holds: 1 });
});
