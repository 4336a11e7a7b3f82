import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import {
  acquired,
  answers,
  DURABLE,
  deeds,
  type Fleet,
  LIST,
  type Proxied,
  START,
  useFleets,
  watch,
} from '../support/fleet.ts';

const { openFleet } = useFleets();
const docker = dockerClient();

let fleet: Fleet;
let a: Proxied;
let b: Proxied;
beforeAll(async () => {
  const settings = {
    // No container call that a test holds is given up meanwhile.
    lease: { duration: '12s' },
    runtime: { docker: { timeout: '10s' } },
    idle: { timeout: '1s' },
  };
  fleet = await openFleet({ settings, redis: DURABLE });
  [a, b] = await Promise.all([fleet.joinThroughProxy(), fleet.joinThroughProxy()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** How often a replica has read a record. */
const reads = async ({ replica }: Proxied): Promise<number> =>
  (await replica.api.metrics()).get('sandbox_broker_store_call_duration_seconds_count{call="read"}') ?? 0;

/** How many calls were about this sandbox or its container. */
const calls = ({ proxy }: Proxied, ...about: readonly string[]): number =>
  proxy.requests.filter((line) => about.some((name) => line.includes(name))).length;

test('[A-02] acquired again by any replica it is the same container, by another hold, without a container call (real)', async () => {
  const first = await acquired(a.replica, person('again'));
  const container = await fleet.containerOf(first.id);
  const holds = new Set([first.holdId]);
  for (const one of [a, b]) {
    const { api } = one.replica;
    let before = 0;
    const acquire = async (): Promise<string> => {
      before = calls(one, first.id, container);
      const { status, body } = await api.acquire(person('again'));
      expect(status).toBe(200);
      expect(body).toMatchObject({ id: first.id, url: first.url, origin: 'reused', holds: holds.size + 1 });
      return body.holdId;
    };
    // What runs is known once the engine's event of it was told and looked into.
    await eventually(async () => {
      await api.release({ id: first.id, holdId: await acquire() });
      return calls(one, first.id, container) === before;
    });
    const creates = one.proxy.count(/^POST/);
    for (let times = 0; times < 5; times += 1) {
      holds.add(await acquire());
      expect(calls(one, first.id, container)).toBe(before);
    }
    expect(one.proxy.count(/^POST/)).toBe(creates);
  }
  expect(holds.size).toBe(11);
  expect(await fleet.containersOf(first.id)).toEqual([container]);
});

test('[A-04] twenty at once over two replicas: one container, one id, twenty holds (real)', async () => {
  const id = fleet.idOf(person('twenty'));
  const starts = [a, b].map(({ proxy }) => proxy.fault(START, { kind: 'hold' }));
  const asked = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? a : b).replica.api.acquire(person('twenty')));
  const waits = [a, b].map(({ replica }) =>
    replica.logged(({ event, sandbox }) => event === 'acquire-waits' && sandbox === id),
  );
  for (const wait of waits) wait.catch(() => undefined);
  await Promise.any(waits);
  await Promise.any(starts.map(({ reached }) => reached));
  for (const start of starts) start.lift();
  const got = await Promise.all(asked);

  expect(got.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
  expect(new Set(got.map(({ body }) => body.id))).toEqual(new Set([id]));
  expect(new Set(got.map(({ body }) => body.url)).size).toBe(1);
  expect(new Set(got.map(({ body }) => body.holdId)).size).toBe(20);
  expect((await fleet.containersOf(id)).length).toBe(1);
  const made = new RegExp(`^POST /containers/create.*${id}`);
  expect(a.proxy.count(made) + b.proxy.count(made)).toBe(1);
  for (const { replica } of [a, b])
    expect((await replica.api.get(id)).body).toMatchObject({ holds: 20, state: 'active' });
  expect(await answers(got[0]!.body.url)).toBe(true);
});

test('[A-16] of two callers one releases: the sandbox stays the other one’s, and is not reaped (real)', async () => {
  const first = await acquired(a.replica, person('both'));
  const second = await acquired(b.replica, person('both'));
  expect(second).toMatchObject({ id: first.id, url: first.url, holds: 2 });
  expect((await b.replica.api.release(first)).body).toMatchObject({ state: 'active', holds: 1, warmUntil: null });
  await Promise.all([watch(a.replica, 2_000), watch(b.replica, 2_000)]);
  expect(deeds(a.replica, b.replica).filter((deed) => deed.endsWith(first.id))).toEqual([]);
  const kept = await a.replica.api.keepalive(first.id, second.holdId);
  expect(kept.status).toBe(200);
  expect(kept.body).toMatchObject({ state: 'active', holds: 1, url: first.url });
  expect(await answers(first.url)).toBe(true);

  await a.replica.api.release(second);
  await eventually(async () => (await fleet.containersOf(first.id)).length === 0, 20_000);
});

for (const by of ['the replica that starts it', 'a peer'] as const) {
  test(`[A-19] destroyed by ${by} while it starts: the start ends, it is gone, nobody gets what is dying (real)`, async () => {
    const who = person(`destroyed by ${by}`);
    const id = fleet.idOf(who);
    const destroyer = by === 'a peer' ? b : a;
    const stops = new RegExp(`^POST /containers/${fleet.deployment}-condemned-${id}-\\w+/stop`);
    const stop = destroyer.proxy.fault(stops, { kind: 'hold' });
    const start = a.proxy.fault(START, { kind: 'hold' }, 1);
    const asked = a.replica.api.acquire(who);
    await start.reached;
    const old = await fleet.containerOf(id);
    const before = await reads(destroyer);
    const destroyed = destroyer.replica.api.destroy(id);
    destroyed.catch(() => undefined);
    await eventually(async () => (await reads(destroyer)) > before + 1);
    expect(await fleet.containersOf(id), 'a start under way is waited for').toEqual([old]);
    start.lift();
    expect((await asked).status).toBe(201);

    await stop.reached;
    const again = await a.replica.api.acquire(who);
    expect(again.status).toBe(201);
    expect(await answers(again.body.url)).toBe(true);
    const fresh = await fleet.containerOf(id);
    expect(fresh).not.toBe(old);
    stop.lift();
    expect((await destroyed).status).toBe(204);
    await eventually(async () => !(await fleet.containersOf(id)).includes(old));
    expect(await fleet.containersOf(id)).toEqual([fresh]);

    expect((await destroyer.replica.api.destroy(id)).status).toBe(204);
    expect(await fleet.containersOf(id)).toEqual([]);
    expect((await a.replica.api.get(id)).status).toBe(404);
  });
}

test('[A-14] found by name after the store lost everything: `discovered`, once it answers, beside an unknown hold (real)', async () => {
  const first = await acquired(a.replica, person('found'));
  const container = await fleet.containerOf(first.id);
  a.replica.signal('SIGSTOP'); // it would write the record back
  await inside(container, 'busybox', 'kill', '-STOP', '-1');
  await fleet.ask((redis) => redis.flushall());

  const before = calls(b, container);
  let answered = false;
  const asked = b.replica.api.acquire(person('found')).finally(() => {
    answered = true;
  });
  await eventually(async () => calls(b, container) > before);
  await watch(b.replica, 500);
  expect(answered).toBe(false);
  expect(await fleet.record(first.id)).toMatchObject({ state: 'starting', container: '' });
  await inside(container, 'busybox', 'kill', '-CONT', '-1');
  const { status, body } = await asked;
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: first.id, url: first.url, origin: 'discovered', holds: 2 });
  expect(await answers(body.url)).toBe(true);

  a.replica.signal('SIGCONT');
  await watch(a.replica, 1_000);
  expect(await fleet.containersOf(first.id)).toEqual([container]);
  expect((await a.replica.api.keepalive(first.id, first.holdId)).body).toMatchObject({ state: 'active', holds: 3 });
});

test('[A-07] the engine cannot say whether it runs: verified it is handed out, unverified it is 503, and it stays (real)', async () => {
  // Nothing is told to it, so it has to ask.
  const c = await fleet.joinThroughProxy({}, (proxy) => proxy.fault(/^GET \/events/, { kind: 'cut' }));
  const { api } = c.replica;
  const first = await acquired(a.replica, person('untold'));
  const container = await fleet.containerOf(first.id);
  const silence = c.proxy.fault(LIST, { kind: 'cut' });
  const trusted = await api.acquire(person('untold'));
  expect(silence.hits).toBeGreaterThan(0);
  expect(trusted.status).toBe(200);
  expect(trusted.body).toMatchObject({ id: first.id, url: first.url, holds: 2 });

  await fleet.redis.stop();
  await fleet.redis.start();
  await eventually(async () => (await fleet.record(first.id)).verified === '0');
  const refused = await api.acquire(person('untold'), { waitMs: 500 });
  expect(refused.status).toBe(503);
  expect(refused.body).toMatchObject({ code: 'sandbox_unsettled', retryable: true });
  expect(refused.headers['retry-after']).toMatch(/^\d+$/);
  expect(await fleet.containersOf(first.id)).toEqual([container]);

  silence.lift();
  const { status, body } = await api.acquire(person('untold'));
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: first.id, url: first.url });
  expect(await fleet.containersOf(first.id)).toEqual([container]);
  expect(deeds(a.replica, b.replica, c.replica).filter((deed) => deed.endsWith(first.id))).toEqual([]);
});

/** Runs a command in a container to its end. */
async function inside(container: string, ...Cmd: readonly string[]): Promise<void> {
  const command = await docker.getContainer(container).exec({ Cmd: [...Cmd] });
  await command.start({ Detach: true });
  await eventually(async () => !(await command.inspect()).Running);
}
