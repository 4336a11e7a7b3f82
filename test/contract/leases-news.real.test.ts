import { expect, test } from 'vitest';
import type { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { Admission } from '../../src/lifecycle/admission.ts';
import { realClock } from '../support/docker.ts';
import { C1, ID, IDENTITY, otherIdentity } from '../support/lease-harness.ts';
import { until } from '../support/redis.ts';
import { useRedis } from '../support/redis-stores.ts';

const redis = useRedis('each test');
const open = (name: string, url?: string): RedisLeaseStore =>
  redis.open({ owner: `host:${name}`, policy: { maxSandboxes: 1 }, ...(url === undefined ? {} : { url }) });

const listening = async (kind: string): Promise<number> =>
  String(await redis.client.client('LIST'))
    .split('\n')
    .filter((line) => line.includes(`flags=${kind}`)).length;
const subscribed = (count: number): Promise<void> =>
  until(async () => (await listening('P')) === count, `${count} subscribers`);

/** The one sandbox there may be, ready and held by nobody else than `store`; gone when the returned function is called. */
async function occupied(store: RedisLeaseStore): Promise<() => Promise<unknown>> {
  await store.census(await store.beginCensus(), []);
  await store.take({ id: ID, identity: IDENTITY, spec: 's' });
  return async () => {
    const seen = await store.read(ID);
    const fence = seen.kind === 'record' ? seen.record.fence : (0 as never);
    await store.claim(ID, fence, { kind: 'failed-start', container: C1 });
    return store.drop(ID, fence, null);
  };
}

/** Waits for room in a store, and counts what it asks. */
function admissionOf(store: RedisLeaseStore) {
  const count = { asked: 0 };
  const counting = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'take' || name === 'unheld') count.asked += 1;
      return value.bind(target);
    },
  });
  const admission = new Admission({
    store: counting,
    eviction: {
      makeRoom: async (user: string | null) => ({ made: false, ...(await counting.unheld(user, 1)), nextMs: null }),
    } as never,
    census: { take: () => Promise.reject(new Error('it was counted')) },
    clock: realClock,
    random: Math.random,
    limits: { max: 1, perUser: 0 },
    waitTimeoutMs: 20_000,
  });
  return { admission, count };
}

const waiter = { ...otherIdentity('waiter'), spec: 's' };
const forever = new AbortController().signal;

test('[C-03] a slot that another replica frees wakes who waits within milliseconds, and waiting asks seldom (real)', async () => {
  const [a, b] = [open('a'), open('b')];
  const { admission, count } = admissionOf(a);
  const free = await occupied(b);
  await subscribed(1);
  const waiting = admission.take(waiter, forever);
  await until(() => admission.waiting === 1, 'the caller to wait');
  await realClock.pause(2_500);
  expect(count.asked).toBeLessThanOrEqual(8);
  const asked = count.asked;
  await until(() => count.asked > asked, 'the caller to ask unasked'); // and not again for more than a second
  await free();
  const freed = performance.now();
  expect((await waiting).reply.kind).toBe('starting');
  expect(performance.now() - freed).toBeLessThan(1_000);
});

test('[C-03] a listener whose connection is cut listens again (real)', async () => {
  const [a, b] = [open('a'), open('b')];
  const heard: string[] = [];
  a.listen((news) => heard.push(news));
  await subscribed(1);
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const free = await occupied(b);
  await subscribed(1);
  await free();
  await until(() => heard.length > 0, 'the news');
  expect(heard).toEqual(['slot-freed']);
});

test('[C-03] where nobody may publish or subscribe everything else works (real)', async () => {
  await redis.client.acl('SETUSER', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels');
  const mute = open('mute', redis.server.url.replace('redis://', 'redis://mute:secret@'));
  const heard: string[] = [];
  mute.listen((news) => heard.push(news));
  const free = await occupied(mute);
  expect(await free()).toBe('dropped');
  expect(await listening('P')).toBe(0);
  expect(heard).toEqual([]);
});

test('[C-03] one connection does for all listeners, and ends with the store (real)', async () => {
  const a = open('a');
  await a.ping();
  expect(await listening('P')).toBe(0);
  a.listen(() => undefined);
  a.listen(() => undefined);
  await subscribed(1);
  await a.close();
  await subscribed(0);
  expect(a.listen(() => undefined)).toBeTypeOf('function');
});
