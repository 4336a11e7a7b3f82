import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import type { LeaseStore } from '../../src/leases/lease-store.ts';
import { ID } from '../support/lease-harness.ts';
import { RedisProxy, RedisServer, until } from '../support/redis.ts';
import { answering, type StoreOptions, take, useRedis } from '../support/redis-stores.ts';

const TIMEOUT_MS = 500;
/** What a loaded machine may add. */
const SLACK_MS = 3_000;
const unavailable = { code: 'store_unavailable' };

const redis = useRedis('each test');
const open = (about: StoreOptions = {}): LeaseStore => redis.open({ commandTimeoutMs: TIMEOUT_MS, ...about });

/** Every kind of call, each rejected in time. */
async function expectUnavailable(store: LeaseStore): Promise<void> {
  const calls: (() => Promise<unknown>)[] = [
    () => store.ping(),
    () => take(store),
    () => store.keepalive(ID, 5 as Fence),
    () => store.renew([{ id: ID, fence: 5 as Fence }]),
    () => store.renew([]),
    () => store.handover([ID]),
    () => store.read(ID),
    () => store.page(null, 10),
  ];
  const began = performance.now();
  await Promise.all(calls.map((call) => expect(call()).rejects.toMatchObject(unavailable)));
  expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + SLACK_MS);
}

describe('a Redis that fails', () => {
  test('[L-22] stopped: every call is rejected in time; it recovers by itself', async () => {
    const store = open();
    await take(store);
    await redis.server.stop();
    await expectUnavailable(store);
    await redis.server.start();
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] never there: calls are rejected in time, and work once it is there', async () => {
    await redis.server.stop();
    const store = open();
    await expectUnavailable(store);
    await redis.server.start();
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] hung from the start: calls are rejected in time, and work once it goes on', async () => {
    redis.server.signal('SIGSTOP');
    const store = open();
    try {
      await expectUnavailable(store);
      await expectUnavailable(store);
    } finally {
      redis.server.signal('SIGCONT');
    }
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] hung (SIGSTOP): every call is rejected in time; it recovers by itself', async () => {
    const store = open();
    await take(store);
    redis.server.signal('SIGSTOP');
    try {
      await expectUnavailable(store);
      await expectUnavailable(store);
    } finally {
      redis.server.signal('SIGCONT');
    }
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] calls of a hung server do not pile up', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const store = open();
    await take(store);
    redis.server.signal('SIGSTOP');
    try {
      const round = async () => {
        const calls = Array.from({ length: 3_000 }, () => take(store));
        const results = await Promise.allSettled(calls);
        expect(results.every(({ status }) => status === 'rejected')).toBe(true);
        results.length = 0;
        gc();
        return process.memoryUsage().heapUsed;
      };
      await round();
      const before = await round();
      await round();
      await round();
      expect((await round()) - before).toBeLessThan(8_000_000);
    } finally {
      redis.server.signal('SIGCONT');
    }
    await answering(store);
  });

  test('[L-22] slow: a reply that comes too late is no answer', async () => {
    const proxy = redis.resources.use(await RedisProxy.start(redis.server.port));
    const store = open({ url: proxy.url });
    await answering(store);
    proxy.replies({ delayMs: 4 * TIMEOUT_MS });
    await expectUnavailable(store);
    proxy.replies({});
    await answering(store);
  });

  test('[L-22] a command whose reply was lost is not sent a second time, neither at a reset nor at a timeout', async () => {
    const proxy = redis.resources.use(await RedisProxy.start(redis.server.port));
    const store = open({ url: proxy.url });
    const { fence } = (await take(store)) as { fence: Fence };
    const holds = async () => {
      const snapshot = await open({ owner: 'host:b' }).read(ID);
      return snapshot.kind === 'record' ? snapshot.record.holds.size : -1;
    };
    const about = { container: 'c', engine: 'e', url: 'u', found: false, since: fence, spec: 's', createdAt: null };
    await store.activate({ id: ID, fence, ...about, holdMs: 900_000 } as Parameters<LeaseStore['activate']>[0]);
    await until(async () => (await holds()) === 1, 'the first hold');

    proxy.replies({ swallowed: true });
    const lost = expect(take(store)).rejects.toMatchObject(unavailable);
    await until(async () => (await holds()) === 2, 'the take to be carried out');
    proxy.reset();
    await lost;
    proxy.replies({});
    await answering(store);
    expect(await holds()).toBe(2);

    proxy.replies({ swallowed: true });
    await expect(take(store)).rejects.toMatchObject(unavailable);
    proxy.replies({});
    await answering(store);
    expect(await holds()).toBe(3);
  });

  test('[L-22] READONLY is unavailable, and leads to a new connection', async () => {
    const store = open();
    await take(store);
    const connections = async () =>
      [...String(await redis.client.client('LIST')).matchAll(/^id=(\d+)/gm)].map(([, id]) => id);
    const before = await connections();
    await redis.client.replicaof('127.0.0.1', '1');
    await expect(take(store)).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining('READONLY') });
    await redis.client.call('REPLICAOF', 'NO', 'ONE');
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
    const after = await connections();
    expect(after).toHaveLength(before.length);
    expect(after).not.toEqual(before);
  });

  test('[L-22] OOM is unavailable, and nothing is written', async () => {
    const store = open();
    await answering(store);
    await redis.client.config('SET', 'maxmemory', '1');
    await expect(take(store)).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining('OOM') });
    expect(await store.read(ID)).toMatchObject({ kind: 'absent' });
    await redis.client.config('SET', 'maxmemory', '0');
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] BUSY is unavailable', async () => {
    const other = redis.server.client();
    redis.resources.defer(() => other.disconnect());
    const store = open();
    await answering(store);
    await redis.client.config('SET', 'busy-reply-threshold', '1');
    const loop = other.eval('while true do end', 0).catch(() => {});
    await until(
      () =>
        redis.client.ping().then(
          () => false,
          (error) => /BUSY/.test(String(error)),
        ),
      'the server to be busy',
    );
    await expect(take(store)).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining('BUSY') });
    await redis.client.script('KILL');
    await loop;
    await answering(store);
  });

  test('[L-22] NOAUTH is unavailable; with the password of the url it works', async () => {
    await using secret = await RedisServer.start({ args: ['--requirepass', 'p@ss'] });
    const store = open({ url: secret.url });
    await until(
      () =>
        store.ping().then(
          () => false,
          (error) => /NOAUTH/.test(error.message) && error.code === 'store_unavailable',
        ),
      'NOAUTH to be told',
    );
    const able = open({ url: secret.url.replace('//', '//:p%40ss@'), owner: 'host:b' });
    expect(await take(able)).toMatchObject({ kind: 'starting' });
  });

  test('[L-22] LOADING is unavailable, and it recovers by itself', async () => {
    await using slow = await RedisServer.start({ persistent: true, args: ['--key-load-delay', '2000'] });
    const client = slow.client();
    await client.mset(Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`k${n}`, 'v'])));
    await client.save();
    client.disconnect();
    await slow.stop();
    await slow.start(false);
    const store = open({ url: slow.url });
    await expectUnavailable(store);
    await answering(store);
    expect(await take(store)).toMatchObject({ kind: 'starting' });
  });
});
