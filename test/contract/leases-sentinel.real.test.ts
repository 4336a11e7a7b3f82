import { expect, test } from 'vitest';
import { asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { LeaseStore } from '../../src/leases/lease-store.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { C1, ENGINE, ID, IDENTITY, otherIdentity, POLICY, URL1 } from '../support/lease-harness.ts';
import { RedisServer, until } from '../support/redis.ts';
import { Sentinel } from '../support/sentinel.ts';

const answering = (store: LeaseStore) =>
  until(
    () =>
      store.renew([]).then(
        () => true,
        () => false,
      ),
    'the store to answer',
    30_000,
  );

test('[L-25] a failover by Sentinel is found unaided, and begins a new life', async () => {
  await using resources = new AsyncDisposableStack();
  const master = resources.use(await RedisServer.start());
  const sentinel = resources.use(await Sentinel.watch(master));
  const admin = sentinel.replica.client();
  resources.defer(() => admin.disconnect());
  const store = new RedisLeaseStore({
    address: { url: null, ...sentinel.settings, commandTimeoutMs: 1_000 },
    keyPrefix: 'sentinel',
    deployment: 'd',
    owner: asOwnerId('host:a'),
    policy: POLICY,
  });
  resources.defer(() => store.close());
  await answering(store);
  const heard: string[] = [];
  store.listen((news) => heard.push(news));

  const { fence } = (await store.take({ id: ID, identity: IDENTITY, spec: 's' })) as { fence: Fence };
  const about = { container: C1, engine: ENGINE, url: URL1, found: false, since: fence, spec: 's', createdAt: null };
  const before = await store.activate({ id: ID, fence, ...about, holdMs: 900_000 });
  if (before === 'moved') throw new Error('refused');
  await until(async () => (await admin.keys('*sandbox:*')).length === 1, 'the record to reach the replica');

  await master.stop();
  await answering(store);
  const renewed = await store.renew([{ id: ID, fence }]);
  expect(['renewed', 'lapsed']).toContain(renewed.get(ID));
  const snapshot = await store.read(ID);
  expect(snapshot).toMatchObject({ kind: 'record', record: { verified: false, fence } });
  expect(snapshot.kind === 'record' && snapshot.record.life).not.toBe(before.life);

  const { id } = otherIdentity('another');
  await until(async () => {
    await store.census(await store.beginCensus(), [{ id, userId: null }]);
    await store.census(await store.beginCensus(), []);
    return heard.length > 0;
  }, 'news from the new master');
});
