import { afterAll, beforeAll, expect, test } from 'vitest';
import { LABEL } from '../../src/runtime/labels.ts';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import {
  acquired,
  answers,
  CREATE,
  type Fleet,
  type Proxied,
  RENAME,
  START,
  STOP,
  useFleets,
} from '../support/fleet.ts';

const { openFleet } = useFleets();
const docker = dockerClient();
const MAX = 5;
const WAIT_MS = 4_000;
/** A stop hangs for longer than an acquire takes on a loaded machine. */
const PATIENT = { lease: { duration: '7s' }, runtime: { docker: { timeout: '6s' } } };

let fleet: Fleet;
let a: BrokerProcess;
let proxied: Proxied;
beforeAll(async () => {
  const capacity = { max: MAX, perUser: 2, waitTimeout: `${WAIT_MS}ms` };
  fleet = await openFleet({ settings: { ...PATIENT, capacity } });
  [a, proxied] = await Promise.all([fleet.join(), fleet.joinThroughProxy()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** Counts, by the engine's events, how many containers of a deployment run, from a moment at which none does. */
async function countRunning(deployment: string): Promise<{ most: number; now: number; end(): void }> {
  const filters = { label: [`${LABEL.deployment}=${deployment}`], event: ['start', 'die'] };
  const stream = await docker.getEvents({ filters: JSON.stringify(filters) });
  const running = new Set<string>();
  const state = { most: 0, now: 0, end: () => (stream as unknown as { destroy(): void }).destroy() };
  let rest = '';
  stream.on('error', () => undefined);
  stream.on('data', (data: Buffer) => {
    const lines = (rest + data.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { Action, Actor } = JSON.parse(line) as { Action: string; Actor: { ID: string } };
      if (Action === 'start') running.add(Actor.ID);
      else running.delete(Actor.ID);
      state.now = running.size;
      state.most = Math.max(state.most, running.size);
    }
  });
  return state;
}

const both = (): readonly BrokerProcess[] => [a, proxied.replica];
const on = (n: number): BrokerProcess => both()[n % 2]!;
const used = async (): Promise<number> => (await a.api.status()).body.capacity.used;

async function empty(): Promise<void> {
  const { items } = (await a.api.list()).body;
  await Promise.all(items.map(({ id }) => a.api.destroy(id)));
  await eventually(async () => (await used()) === 0 && (await fleet.containers()).length === 0, 20_000);
}

test('[C-01] forty at once over two replicas: never more than the limits, the rest is told 429 (real)', async () => {
  const running = await countRunning(fleet.deployment);
  const greedy = (n: number) => ({ userId: 'greedy', threadId: `${n}` });
  const asked = Array.from({ length: 40 }, async (_, n) => {
    const began = performance.now();
    const answer = await on(n).api.acquire(n < 6 ? greedy(n) : person(`crowd ${n}`));
    return { ...answer, n, ms: performance.now() - began };
  });
  const all = await Promise.all(asked);
  const admitted = all.filter(({ status }) => status === 201);
  expect(admitted).toHaveLength(MAX);
  expect(admitted.filter(({ n }) => n < 6).length).toBeLessThanOrEqual(2);
  const refused = all.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(40 - MAX);
  for (const { body, ms, headers } of refused) {
    expect(body.code).toMatch(/^(user_)?capacity_exhausted$/);
    expect(ms).toBeGreaterThanOrEqual(WAIT_MS - 50);
    expect(ms).toBeLessThan(WAIT_MS + 10_000);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
  }
  for (const { body } of admitted) expect(await answers(body.url)).toBe(true);

  // What nobody holds makes room, what is held stays.
  const [held, ...unheld] = admitted;
  await Promise.all(unheld.map(({ body }) => a.api.release(body)));
  const next = await Promise.all(Array.from({ length: 10 }, (_, n) => on(n).api.acquire(person(`next ${n}`))));
  expect(next.filter(({ status }) => status === 201)).toHaveLength(MAX - 1);
  expect(next.filter(({ status }) => status === 429)).toHaveLength(10 - (MAX - 1));
  expect(await answers(held!.body.url)).toBe(true);
  for (const { body } of unheld) expect(await fleet.record(body.id)).toMatchObject({ state: 'gone' });
  await eventually(async () => running.now === MAX);
  expect(running.most).toBe(MAX);
  running.end();
  await empty();
});

test('[C-02] [C-03] who waits is served in turn by whatever frees anywhere; who gave up has left the line (real)', async () => {
  const capacity = { max: 2, waitTimeout: '30s' };
  const profiles = { default: {}, huge: { resources: { memory: '1024GiB' } } };
  const patient = await openFleet({ settings: { ...PATIENT, capacity, profiles } });
  try {
    const [c, d] = await Promise.all([patient.join(), patient.join()]);
    const held = await acquired(c, person('held'));
    const idle = await acquired(d, person('idle'));
    await d.api.release(idle);
    await c.api.release(held);
    const first = await acquired(c, person('first'));
    expect(first.origin).toBe('created');
    expect(await patient.record(idle.id)).toMatchObject({ state: 'gone' });
    expect(await acquired(d, person('held'))).toMatchObject({ origin: 'reclaimed', url: held.url });

    const served: string[] = [];
    const wait = async (who: string, signal?: AbortSignal): Promise<void> => {
      const { status } = await c.api.acquire(person(who), {}, signal);
      served.push(`${who} ${status}`);
    };
    const waiting = async (count: number): Promise<unknown> =>
      eventually(async () => (await c.api.status()).body.capacity.waiting === count);
    const second = wait('second');
    await waiting(1);
    const hangUp = new AbortController();
    const gone = wait('gone', hangUp.signal).catch(() => undefined);
    await waiting(2);
    const third = wait('third');
    await waiting(3);
    hangUp.abort();
    await gone;
    await waiting(2);
    // Unheld at one replica: it goes for who waits at the other.
    await d.api.release(first);
    await second;
    expect(await patient.record(first.id)).toMatchObject({ state: 'gone' });
    expect(await answers(held.url)).toBe(true);
    const began = performance.now();
    await d.api.destroy(held.id);
    await third;
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(served).toEqual(['second 201', 'third 201']);
    expect(c.events('capacity-exceeds-engine')).toMatchObject([{ level: 'warn', maxSandboxes: 2, profile: 'huge' }]);
  } finally {
    await patient[Symbol.asyncDispose]();
  }
});

test('[A-08] an eviction whose stop hangs delays no acquire of the sandbox that goes (real)', async () => {
  const { replica: b, proxy } = proxied;
  const all = await Promise.all(Array.from({ length: MAX }, (_, n) => acquired(on(n), person(`full ${n}`))));
  const doomed = all[0]!;
  await a.api.release(doomed);
  const stop = proxy.fault(STOP, { kind: 'hold' }, 1);
  const evicting = b.api.acquire(person('newcomer'));
  await stop.reached;
  const again = await a.api.acquire(person('full 0'));
  expect(stop.held, 'what was to be stopped hangs as before').toBe(1);
  expect([again.status, again.body.id]).toEqual([201, doomed.id]);
  expect(await answers(again.body.url)).toBe(true);
  stop.lift();
  expect((await evicting).status).toBe(429);
  await eventually(async () => (await fleet.containersOf(doomed.id)).length === 1, 20_000);
  expect(await answers(again.body.url)).toBe(true);
  await empty();
});

test('[C-04] after failures of every kind as many slots are used as there are sandboxes (real)', async () => {
  const { replica: b, proxy } = proxied;
  const kept = await acquired(b, person('kept'));
  for (const [n, fault] of [
    () => proxy.fault(CREATE, { kind: 'refuse', status: 500, message: 'no space' }, 1),
    () => proxy.fault(START, { kind: 'refuse', status: 500, message: 'no runtime' }, 1),
    () => proxy.fault(CREATE, { kind: 'cut' }, 1),
    () => proxy.fault(START, { kind: 'cut' }, 1),
  ].entries()) {
    const { lift } = fault();
    expect((await b.api.acquire(person(`failing ${n}`))).status).toBeGreaterThanOrEqual(500);
    lift();
  }
  await Promise.all([1, 2, 3].map((n) => b.api.acquire(person(`abandoned ${n}`), { waitMs: 0 })));
  await eventually(async () => {
    const containers = (await fleet.containers()).filter(({ state }) => state === 'running').length;
    return (await fleet.containers()).length === 4 && containers === 4 && (await used()) === 4;
  }, 30_000);
  // A removal whose rename and stop fail is tried again; its slot is free once it is done.
  const rename = proxy.fault(RENAME, { kind: 'refuse', status: 500, message: 'busy' }, 1);
  await b.api.destroy(kept.id);
  rename.lift();
  await eventually(async () => (await used()) === 3 && (await fleet.containers()).length === 3, 30_000);
  expect(await fleet.ask((redis) => redis.hlen(`sandbox-broker:{${fleet.deployment}}:counted`))).toBe(3);
  await empty();
});

test('[C-07] a store that lost everything admits no more than there is room for; whoever runs is let in (real)', async () => {
  const running = await countRunning(fleet.deployment);
  const before = await Promise.all(Array.from({ length: MAX - 1 }, (_, n) => acquired(on(n), person(`before ${n}`))));
  await fleet.ask((redis) => redis.flushall());
  const after = await Promise.all(Array.from({ length: 6 }, (_, n) => on(n).api.acquire(person(`after ${n}`))));
  expect(after.map(({ status }) => status).sort()).toEqual([201, 429, 429, 429, 429, 429]);

  // Nobody is left who remembers anything.
  for (const replica of both()) replica.signal('SIGKILL');
  await Promise.all(both().map((replica) => replica.ended()));
  await fleet.ask((redis) => redis.flushall());
  const fresh = await fleet.join();
  const back = await fresh.api.acquire(person('before 0'));
  expect([back.status, back.body.url]).toEqual([200, before[0]!.url]);
  expect(back.body.origin).toMatch(/discovered|reused/); // by now it may have been adopted
  expect((await fresh.api.acquire(person('one more'))).body.code).toBe('capacity_exhausted');
  expect(running.most).toBe(MAX);
  running.end();
});
