import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { asOwnerId, type SandboxId } from '../../src/domain/ids.ts';
import type { LeasePolicy } from '../../src/leases/lease-store.ts';
import { decodeRecord, encodeRecord, type RecordFields } from '../../src/leases/record-fields.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { aged, type LeaseHarness } from '../support/lease-harness.ts';
import type { RedisServer } from '../support/redis.ts';

/** A deployment of its own in a Redis; `client` looks behind the store's back. */
export function redisHarness(server: RedisServer, client: Redis, policy: LeasePolicy): LeaseHarness {
  const deployment = randomUUID();
  const keys = new RedisKeys('contract', deployment);
  const address = { url: server.url, sentinels: [], sentinelName: null, commandTimeoutMs: 5_000 };
  const stores: RedisLeaseStore[] = [];
  const recordOf = async (id: SandboxId) => {
    const record = decodeRecord(id, (await client.hgetall(keys.record(id))) as Partial<RecordFields>);
    if ('kind' in record) throw new Error(`no readable record of ${id}`);
    return record;
  };
  return {
    open: (owner) => {
      const store = new RedisLeaseStore({
        address,
        keyPrefix: 'contract',
        deployment,
        owner: asOwnerId(owner),
        policy,
      });
      stores.push(store);
      return store;
    },
    age: async (id, ms) => {
      await client.hset(keys.record(id), encodeRecord(aged(await recordOf(id), ms)));
      const ends = await client.pexpiretime(keys.record(id));
      if (ends > 0) await client.pexpireat(keys.record(id), ends - ms);
      await client.zadd(keys.unheld, 'XX', 'INCR', -ms, id);
    },
    ageLife: async (ms) => {
      const left = await client.pttl(keys.life);
      if (left - ms > 0) await client.pexpire(keys.life, left - ms);
      else await client.del(keys.life);
    },
    endLife: async () => void (await client.del(keys.life)),
    plant: async (id, fields) => {
      await client.del(keys.record(id));
      await client.zrem(keys.unheld, id);
      await client.hset(keys.record(id), fields as Record<string, string>);
      await client.zadd(keys.index, 0, id);
    },
    dump: async (id) => {
      const fields = await client.hgetall(keys.record(id));
      if (Object.keys(fields).length === 0) return null;
      return JSON.stringify([Object.entries(fields).sort(), await client.pexpiretime(keys.record(id))]);
    },
    close: async () => void (await Promise.all(stores.map((store) => store.close()))),
  };
}
