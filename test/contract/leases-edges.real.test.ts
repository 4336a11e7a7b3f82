import { expect, test } from 'vitest';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { C1, ID, IDENTITY, otherIdentity } from '../support/lease-harness.ts';
import { KEY_PREFIX, useRedis } from '../support/redis-stores.ts';
import { leaseEdges } from './lease-contract-edges.ts';
import { redisHarness } from './lease-contract-redis.ts';

const redis = useRedis('the file');

leaseEdges('redis', async (policy) => redisHarness(redis.server, redis.client, policy));

/** A store in a deployment of its own, and where that keeps what. */
const open = (deployment: string) => ({
  store: redis.open({ deployment }),
  keys: new RedisKeys(KEY_PREFIX, deployment),
});

test('[L-28] a value of another kind under a record’s key cannot be read, and is no batch’s end', async () => {
  const { store, keys } = open('kind');
  await redis.client.set(keys.record(ID), 'text');
  const other = otherIdentity('t2');
  await store.take({ ...other, spec: 's' });
  const take = store.take({ id: ID, identity: IDENTITY, spec: 's' });
  await expect(take).rejects.toMatchObject({ code: 'record_unreadable' });
  expect((await store.readMany([ID, other.id])).map(({ kind }) => kind)).toEqual(['unreadable', 'record']);
  expect(await store.condemnByIntent(ID, C1)).toMatchObject({ container: C1 });
});

test('tombstones that tell nothing any more leave the index', async () => {
  const { store, keys } = open('index');
  const claim = await store.condemnByIntent(ID, C1);
  if (typeof claim === 'string') throw new Error(claim);
  await store.drop(ID, claim.fence, null);
  expect(await redis.client.zrange(keys.index, '0', '-1')).toEqual([ID]);
  const tombstones = keys.common[5]!;
  await redis.client.zadd(tombstones, 1, ID); // as if its end had come
  await redis.client.del(keys.record(ID));
  const other = otherIdentity('t2');
  await store.take({ ...other, spec: 's' });
  expect(await redis.client.zrange(keys.index, '0', '-1')).toEqual([other.id]);
  expect(await redis.client.zcard(tombstones)).toBe(0);
});
