import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asOwnerId } from '../../src/domain/ids.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { C1, ID, IDENTITY, otherIdentity, POLICY } from '../support/lease-harness.ts';
import { RedisServer } from '../support/redis.ts';
import { leaseEdges } from './lease-contract-edges.ts';
import { redisHarness } from './lease-contract-redis.ts';

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  client = server.client();
});
afterAll(async () => {
  client.disconnect();
  await server[Symbol.asyncDispose]();
});

leaseEdges('redis', async (policy) => redisHarness(server, client, policy));

/** A store in a deployment of its own, and where that keeps what. */
function open(deployment: string) {
  const address = { url: server.url, sentinels: [], sentinelName: null, commandTimeoutMs: 5_000 };
  const owner = asOwnerId('host:a');
  const store = new RedisLeaseStore({ address, keyPrefix: 'edges', deployment, owner, policy: POLICY });
  return { store, keys: new RedisKeys('edges', deployment) };
}

test('[L-28] a value of another kind under a record’s key cannot be read, and is no batch’s end', async () => {
  const { store, keys } = open('kind');
  await client.set(keys.record(ID), 'text');
  const other = otherIdentity('t2');
  await store.take({ ...other, spec: 's' });
  const take = store.take({ id: ID, identity: IDENTITY, spec: 's' });
  await expect(take).rejects.toMatchObject({ code: 'record_unreadable' });
  expect((await store.readMany([ID, other.id])).map(({ kind }) => kind)).toEqual(['unreadable', 'record']);
  expect(await store.condemnByIntent(ID, C1)).toMatchObject({ container: C1 });
  await store.close();
});

test('tombstones that tell nothing any more leave the index', async () => {
  const { store, keys } = open('index');
  const claim = await store.condemnByIntent(ID, C1);
  if (typeof claim === 'string') throw new Error(claim);
  await store.drop(ID, claim.fence, null);
  expect(await client.zrange(keys.index, '0', '-1')).toEqual([ID]);
  const tombstones = keys.common[5]!;
  await client.zadd(tombstones, 1, ID); // as if its end had come
  await client.del(keys.record(ID));
  const other = otherIdentity('t2');
  await store.take({ ...other, spec: 's' });
  expect(await client.zrange(keys.index, '0', '-1')).toEqual([other.id]);
  expect(await client.zcard(tombstones)).toBe(0);
  await store.close();
});
