import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import { acquired, answers, CREATE, type Fleet, LIST, type Proxied, useFleets } from '../support/fleet.ts';

const { openFleet } = useFleets();
const docker = dockerClient();
const spared = (spares: number) => ({ profiles: { default: { spares } } });

let fleet: Fleet;
let a: BrokerProcess;
let proxied: Proxied;
beforeAll(async () => {
  fleet = await openFleet({ settings: { ...spared(2), capacity: { max: 6 } } });
  a = await fleet.join();
  proxied = await fleet.joinThroughProxy();
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

type Level = { readonly ready: number; readonly wanted: number };
async function levelOf({ api }: BrokerProcess): Promise<Level | undefined> {
  const { body } = await api.status();
  return (body as unknown as { spares: Record<string, Level> }).spares.default;
}
const full = (replica: BrokerProcess, ready = 2): Promise<unknown> =>
  eventually(async () => (await levelOf(replica))?.ready === ready, 30_000);
const spares = async (): Promise<string[]> =>
  (await fleet.containers()).filter(({ name }) => name.includes('-spare-')).map(({ id }) => id);

test('[C-05] a spare answers under the identity’s own name, by whichever replica; the pool is filled again (real)', async () => {
  const { replica: b, proxy } = proxied;
  await full(a);
  const pool = new Set(await spares());
  const creates = proxy.count(CREATE);
  const { status, body } = await b.api.acquire(person('first'));
  expect([status, body.origin]).toEqual([200, 'spare']);
  const container = await fleet.containerOf(body.id);
  expect(pool.has(container)).toBe(true);
  expect(await answers(body.url)).toBe(true);
  expect(proxy.count(CREATE)).toBe(creates);

  const again = await a.api.acquire(person('first'));
  expect([again.status, again.body.origin, again.body.url]).toEqual([200, 'reused', body.url]);
  expect(await fleet.containersOf(body.id)).toEqual([container]);
  await full(b);
});

test('[A-02] a former spare is known by the engine’s events: acquiring it again makes no container call (real)', async () => {
  const { replica: b, proxy } = proxied;
  await full(a);
  const { body } = await b.api.acquire(person('second'));
  await eventually(async () => {
    const lists = proxy.count(LIST);
    expect((await b.api.acquire(person('second'))).body.url).toBe(body.url);
    return proxy.count(LIST) === lists;
  });
});

test('[C-05] two replicas that want the last spares at once never hand out one container twice (real)', async () => {
  const { replica: b } = proxied;
  await full(a);
  const all = await Promise.all([1, 2, 3, 4].map((n) => acquired(n % 2 === 0 ? a : b, person(`race ${n}`))));
  expect(all.filter(({ origin }) => origin === 'spare').length).toBeLessThanOrEqual(2);
  const containers = await Promise.all(all.map(({ id }) => fleet.containerOf(id)));
  expect(new Set(containers).size).toBe(4);
  for (const { id } of all) await a.api.destroy(id);
});

test('[C-05] the store lost its keys: what was handed out stays whose it is, the forgotten spares are replaced (real)', async () => {
  const { replica: b } = proxied;
  await full(a);
  const held = await acquired(b, person('held'));
  const before = await fleet.containerOf(held.id);
  await full(a);
  const forgotten = await spares();
  await fleet.ask((redis) => redis.flushall());
  const all = await Promise.all(['x', 'y', 'z'].map((who, n) => acquired(n === 0 ? a : b, person(who))));
  const containers = await Promise.all(all.map(({ id }) => fleet.containerOf(id)));
  expect(new Set([...containers, before]).size).toBe(4);
  expect(await fleet.containerOf(held.id)).toBe(before);
  expect(await answers(held.url)).toBe(true);
  await eventually(async () => !(await spares()).some((id) => forgotten.includes(id)), 30_000);
  for (const { id } of [held, ...all]) await a.api.destroy(id);
});

test('[C-06] whoever tends the pool is killed: another one goes on; spares of an older spec are replaced (real)', async () => {
  await full(a);
  const old = await spares();
  const c = await fleet.launch({ profiles: { default: { spares: 2, environment: { GENERATION: '2' } } } });
  a.signal('SIGKILL');
  proxied.replica.signal('SIGKILL');
  await eventually(async () => {
    const now = await spares();
    return now.length === 2 && !now.some((id) => old.includes(id));
  }, 30_000);
  const { body } = await c.api.acquire(person('newer'));
  expect(body.origin).toBe('spare');
  const { Config } = await docker.getContainer(await fleet.containerOf(body.id)).inspect();
  expect(Config.Env).toContain('GENERATION=2');
});

test('[C-05] spares give way as sandboxes need the capacity, and go with a replica that removes its own (real)', async () => {
  const small = await openFleet({ settings: { ...spared(2), capacity: { max: 2 } } });
  try {
    const only = await small.join({ shutdown: { sandboxes: 'destroy' } });
    await eventually(async () => (await small.containers()).filter(({ state }) => state === 'running').length === 2);
    await full(only);
    const first = await acquired(only, person('first'));
    expect(first.origin).toBe('spare');
    await full(only, 1);
    const second = await acquired(only, person('second'));
    expect(second.origin).toBe('spare');
    await eventually(async () => (await small.containers()).length === 2);
    expect((await only.api.acquire(person('third'))).body.code).toBe('capacity_exhausted');
    await only.api.destroy(second.id);
    await full(only, 1);
    only.signal('SIGTERM');
    await only.ended();
    expect(await small.containers()).toEqual([]);
  } finally {
    await small[Symbol.asyncDispose]();
  }
});
