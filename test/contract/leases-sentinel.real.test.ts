import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { LeaseStore } from '../../src/leases/lease-store.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { C1, ENGINE, ID, IDENTITY, otherIdentity, POLICY, URL1 } from '../support/lease-harness.ts';
import { freePort, RedisServer, until } from '../support/redis.ts';

/** A sentinel that watches one master under the name `leases`, alone. */
async function startSentinel(master: RedisServer, resources: AsyncDisposableStack): Promise<number> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'leases-sentinel-'));
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor leases 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds leases 500',
    'sentinel failover-timeout leases 3000',
  ];
  await writeFile(join(directory, 'sentinel.conf'), lines.join('\n'));
  const child: ChildProcess = spawn('redis-server', [join(directory, 'sentinel.conf'), '--sentinel'], {
    stdio: 'ignore',
    cwd: directory,
  });
  resources.defer(async () => {
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  });
  return port;
}

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
  const replica = resources.use(await RedisServer.start());
  const admin = replica.client();
  resources.defer(() => admin.disconnect());
  await admin.replicaof('127.0.0.1', String(master.port));
  const port = await startSentinel(master, resources);
  await until(async () => /master_link_status:up/.test(await admin.info('replication')), 'the replica');
  const store = new RedisLeaseStore({
    address: { url: null, sentinels: [{ host: '127.0.0.1', port }], sentinelName: 'leases', commandTimeoutMs: 1_000 },
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
  const sentinel = new (await import('ioredis')).Redis(port, '127.0.0.1');
  resources.defer(() => sentinel.disconnect());
  await until(
    async () => ((await sentinel.call('SENTINEL', 'replicas', 'leases')) as unknown[]).length === 1,
    'the sentinel to know it',
  );

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
