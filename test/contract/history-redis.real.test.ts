import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { asOwnerId } from '../../src/domain/ids.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { eventually } from '../support/docker.ts';
import { ID, POLICY } from '../support/lease-harness.ts';
import { historyContract } from './history-contract.ts';

const url = process.env.REDIS_URL ?? '';
const PREFIX = 'history-test';

historyContract('redis', async () => {
  const deployment = randomUUID();
  const address = { url, sentinels: [], sentinelName: null, commandTimeoutMs: 2_000 };
  const store = (owner: string) =>
    new RedisLeaseStore({ address, keyPrefix: PREFIX, deployment, owner: asOwnerId(owner), policy: POLICY });
  const stores = [store('host:a'), store('host:b')] as const;
  const client = new Redis(url);
  const { life } = new RedisKeys(PREFIX, deployment).history(ID);
  const isThere = (one: RedisLeaseStore): Promise<boolean> =>
    one.ping().then(
      () => true,
      () => false,
    );
  for (const one of stores) await eventually(() => isThere(one));
  return {
    a: stores[0].history,
    b: stores[1].history,
    keptMs: () => client.pttl(life),
    forget: async (ms) => void (await client.pexpire(life, (await client.pttl(life)) - ms)),
    close: async () => {
      const keys = await client.keys(`${PREFIX}:{${deployment}}:*`);
      if (keys.length > 0) await client.unlink(...keys);
      client.disconnect();
      for (const one of stores) await one.close();
    },
  };
});
