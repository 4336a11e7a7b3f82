import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Fence, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { C1, ID, IDENTITY, URL1 } from '../support/lease-harness.ts';
import { RedisServer, until } from '../support/redis.ts';
import { answering, FOUND, KEY_PREFIX, ready, recordOf, take, useRedis } from '../support/redis-stores.ts';

const redis = useRedis('each test', { persistent: true });

describe('owners on separate connections', () => {
  test('[L-18] of eight that adopt one unknown sandbox at once, one wins, every time', async () => {
    const stores = Array.from({ length: 8 }, (_, n) => redis.open({ owner: `host:${n}` }));
    const key = new RedisKeys(KEY_PREFIX, 'd').record(ID);
    for (let round = 0; round < 20; round += 1) {
      await redis.client.del(key);
      const replies = await Promise.all(stores.map((store) => store.adopt({ id: ID, container: FOUND })));
      const winners = stores.filter((_, n) => replies[n] !== 'refused');
      expect(winners).toHaveLength(1);
      expect((await recordOf(stores[0]!)).owner).toBe(winners[0]!.owner);
    }
  });

  test('[L-18] of eight that claim one unheld sandbox at once, one wins, every time', async () => {
    const stores = Array.from({ length: 8 }, (_, n) => redis.open({ owner: `host:${n}` }));
    const starter = redis.open({ owner: 'host:starter' });
    for (let round = 0; round < 20; round += 1) {
      const fence = await ready(starter);
      await starter.release(ID, fence);
      const replies = await Promise.all(stores.map((store) => store.claim(ID, fence, { kind: 'capacity' })));
      expect(replies.filter((reply) => reply !== 'refused')).toHaveLength(1);
      const winner = stores[replies.findIndex((reply) => reply !== 'refused')]!;
      await winner.drop(ID, (await recordOf(winner)).fence, null);
    }
  });
});

describe('fences', () => {
  test('[L-19] go on growing after FLUSHALL', async () => {
    const store = redis.open();
    const fence = await ready(store);
    await redis.client.flushall();
    expect((await take(store)) as { fence: Fence }).toMatchObject({ kind: 'starting' });
    expect((await recordOf(store)).fence).toBeGreaterThan(fence);
  });

  test('[L-19] go on growing after a restart without data, and after one with an older copy', async () => {
    const store = redis.open();
    await ready(store);
    await redis.client.save();
    await take(store);
    const { fence: before } = await recordOf(store);
    await redis.server.stop();
    await redis.server.start();
    await answering(store);
    expect((await recordOf(store)).fence).toBeLessThan(before);
    await take(store);
    const { fence: after } = await recordOf(store);
    expect(after).toBeGreaterThan(before);
    await redis.server.stop();
    await rm(join(redis.server.directory, 'dump.rdb'));
    await redis.server.start();
    await answering(store);
    await take(store);
    expect((await recordOf(store)).fence).toBeGreaterThan(after);
  });

  test('[L-29] are exact in the store: every digit is there', async () => {
    const store = redis.open();
    const known = 9_007_199_254_740_001 as Fence;
    await store.take({ id: ID, identity: IDENTITY, spec: 's', known });
    const keys = new RedisKeys(KEY_PREFIX, 'd');
    expect(await redis.client.hget(keys.record(ID), 'fence')).toBe('9007199254740002');
    expect(await redis.client.get(keys.common[1]!)).toBe('9007199254740002');
  });
});

describe('lives', () => {
  test('[L-25] a restart begins a new life: nothing is verified, and whoever held it may come back', async () => {
    const store = redis.open();
    const fence = await ready(store);
    const { life } = await recordOf(store);
    await store.release(ID, fence);
    await redis.client.save();
    await redis.server.stop();
    await redis.server.start();
    await answering(store);
    expect(await store.claim(ID, fence, { kind: 'idle', unheldMs: 0 })).toBe('refused');
    const record = await recordOf(store);
    expect(record.life).not.toBe(life);
    expect(record.verified).toBe(false);
    expect(record.holds.has(UNKNOWN_HOLD)).toBe(true);
  });

  test('[L-25] another server with a copy begins a new life, also when it is the other way round again', async () => {
    const store = redis.open();
    await ready(store);
    const { life: first } = await recordOf(store);
    await using other = await RedisServer.start();
    const copy = other.client();
    redis.resources.defer(() => copy.disconnect());
    await copy.replicaof('127.0.0.1', String(redis.server.port));
    await until(async () => /master_link_status:up/.test(await copy.info('replication')), 'the copy');
    await copy.call('REPLICAOF', 'NO', 'ONE');
    const there = redis.open({ url: other.url });
    await take(there);
    expect(await recordOf(there)).toMatchObject({ verified: false });
    expect((await recordOf(there)).life).not.toBe(first);
    await there.verify(ID, C1, URL1);
    await redis.client.replicaof('127.0.0.1', String(other.port));
    const { life } = new RedisKeys(KEY_PREFIX, 'd');
    await until(async () => (await redis.client.get(life)) === (await copy.get(life)), 'the copy back');
    await redis.client.call('REPLICAOF', 'NO', 'ONE');
    await answering(store);
    await take(store);
    expect(await recordOf(store)).toMatchObject({ verified: false });
  });

  test('[L-25] lost keys begin a new life for what is written back', async () => {
    const store = redis.open();
    const fence = await ready(store);
    const { life } = await recordOf(store);
    await redis.client.flushall();
    expect(await store.renew([{ id: ID, fence }])).toEqual(new Map([[ID, 'lapsed']]));
    const record = await store.reassert({ id: ID, fence, ...FOUND });
    expect(record).toMatchObject({ verified: false, owner: 'host:a' });
    expect((record as { life: string }).life).not.toBe(life);
  });

  test('[L-25] a life ends a lease after the last renewal pass, and not while somebody renews', async () => {
    const policy = { leaseMs: 1_500 };
    const [a, b] = [redis.open({ policy }), redis.open({ owner: 'host:b', policy })];
    await ready(a);
    const { life } = await recordOf(a);
    const enough = performance.now() + 2_000;
    await until(() => b.renew([]).then(() => performance.now() > enough), 'more than a lease of renewals');
    await take(a);
    expect((await recordOf(a)).life).toBe(life);
    await until(async () => (await recordOf(a)).life !== life, 'the life to end');
    await take(a);
    expect(await recordOf(a)).toMatchObject({ verified: false });
  });

  test('[L-23] it says that it can see peers', () => {
    expect(redis.open().seesPeers).toBe(true);
  });
});
