import { expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { asOwnerId } from '../../src/domain/ids.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { POLICY } from '../support/lease-harness.ts';
import { RedisServer, until } from '../support/redis.ts';

test.for(['noeviction', 'allkeys-lru', 'volatile-ttl'] as const)(
  '[G-07] a Redis that evicts keys is told about: %s',
  async (policy) => {
    await using resources = new AsyncDisposableStack();
    const server = resources.use(await RedisServer.start({}));
    const client = server.client();
    resources.defer(() => client.disconnect());
    await client.call('CONFIG', 'SET', 'maxmemory-policy', policy);
    const events: BrokerEvent[] = [];
    const store = new RedisLeaseStore({
      address: { url: server.url, sentinels: [], sentinelName: null, commandTimeoutMs: 2_000 },
      keyPrefix: 'eviction',
      deployment: 'd',
      owner: asOwnerId('host:a'),
      policy: POLICY,
      emit: (event) => void events.push(event),
    });
    resources.defer(() => store.close());
    await store.ping();
    if (policy !== 'noeviction') await until(() => Promise.resolve(events.length > 0), 'the warning');
    await store.ping();
    expect(events).toEqual(policy === 'noeviction' ? [] : [{ type: 'store-evicts', policy }]);
  },
);
