import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { LeaseStore, Spare } from '../../src/leases/lease-store.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { C1, ENGINE, ID, IDENTITY, POLICY, URL1 } from '../support/lease-harness.ts';
import { RedisServer, until } from '../support/redis.ts';

let server: RedisServer;
let client: Redis;
let resources: AsyncDisposableStack;

beforeEach(async () => {
  resources = new AsyncDisposableStack();
  server = resources.use(await RedisServer.start());
  client = server.client();
  resources.defer(() => client.disconnect());
});
afterEach(() => resources.disposeAsync());

function open(url = server.url): RedisLeaseStore {
  const address = { url, sentinels: [], sentinelName: null, commandTimeoutMs: 2_000 };
  const owner = asOwnerId('host:a');
  const store = new RedisLeaseStore({ address, keyPrefix: 'scripts', deployment: 'd', owner, policy: POLICY });
  resources.defer(() => store.close());
  return store;
}

const answering = (store: LeaseStore) =>
  until(
    () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    'the store to answer',
  );
const take = (store: LeaseStore) => store.take({ id: ID, identity: IDENTITY, spec: 's' });
const found = {
  container: C1,
  engine: ENGINE,
  url: URL1,
  since: 0 as Fence,
  profile: null,
  userId: null,
  threadId: null,
};
const about = { ...found, spec: null, createdAt: null };

async function ready(store: LeaseStore): Promise<void> {
  const { fence } = (await take(store)) as { fence: Fence };
  await store.activate({ id: ID, fence, ...about, url: URL1, found: false, since: fence, holdMs: 900_000 });
}

async function recordOf(store: LeaseStore) {
  const snapshot = await store.read(ID);
  if (snapshot.kind !== 'record') throw new Error(snapshot.kind);
  return snapshot.record;
}

describe('scripts', () => {
  const spare: Spare = {
    container: C1,
    name: 'n',
    engine: ENGINE,
    url: URL1,
    profile: 'default',
    spec: 's',
    createdAt: 1,
  };

  /** Every operation of the port once; `between` runs before each. */
  async function walk(store: LeaseStore, between: () => Promise<unknown>): Promise<void> {
    const call = async <T>(operation: () => Promise<T>): Promise<T> => {
      await between();
      return await operation();
    };
    const fenceNow = async () => (await recordOf(store)).fence;
    expect(await call(() => store.settleEngine(ENGINE))).toBe(ENGINE);
    await call(() => store.addSpare(spare));
    expect(await call(() => take(store))).toMatchObject({ kind: 'starting' });
    const fence = await fenceNow();
    expect(await call(() => store.claimSpare(ID, fence, 'default', 's'))).toEqual(spare);
    expect(await call(() => store.residue(ID, fence, C1))).toMatchObject({ residue: C1 });
    expect(await call(() => store.confirm({ kind: 'residue', id: ID, fence, container: C1 }))).toMatchObject({
      answer: 'mine',
    });
    const activation = { id: ID, fence, ...about, url: URL1, found: false, since: fence, holdMs: 1_000 };
    expect(await call(() => store.activate(activation))).toMatchObject({ state: 'ready' });
    expect(await call(() => store.verify(ID, C1, URL1))).toMatchObject({ verified: true });
    expect(await call(() => store.keepalive(ID, fence))).toMatchObject({ state: 'ready' });
    expect(await call(() => store.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'renewed']]));
    expect(await call(() => store.release(ID, fence))).toMatchObject({ state: 'ready' });
    await call(() => store.handover([ID]));
    expect(await call(() => store.adopt({ id: ID, container: null }))).toMatchObject({ fence });
    expect(await call(() => store.reassert({ id: ID, fence: (fence + 1) as Fence, ...about }))).toMatchObject({
      state: 'ready',
    });
    expect(await call(() => store.restart(ID, C1, null))).toMatchObject({ residue: C1 });
    const failed = await fenceNow();
    expect(await call(() => store.claim(ID, failed, { kind: 'failed-start', container: C1 }))).toMatchObject({
      fence: failed,
    });
    expect(await call(() => store.drop(ID, failed, null))).toBe('dropped');
    expect(await call(() => store.condemnByIntent(ID, C1))).toMatchObject({ container: C1 });
    await store.drop(ID, await fenceNow(), null);
    await ready(store);
    expect(await call(() => store.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: 0, logTail: '' }))).toBe('ended');
    expect(await call(() => store.read(ID))).toMatchObject({ kind: 'record' });
    expect(await call(() => store.readMany([ID]))).toHaveLength(1);
    expect((await call(() => store.page(null, 10))).items).toHaveLength(1);
  }

  test('[L-21] survive SCRIPT FLUSH before every call', async () => {
    const store = open();
    await walk(store, async () => {});
    await client.flushall();
    await walk(store, () => client.script('FLUSH'));
  });

  test('[L-21] survive a restart', async () => {
    const store = open();
    await walk(store, async () => {});
    await server.stop();
    await server.start();
    await answering(store);
    await walk(store, async () => {});
  });

  test('[L-21] touch keys of one slot only, so that they run on a cluster node', async () => {
    await using node = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
    const admin = node.client();
    resources.defer(() => admin.disconnect());
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until(async () => /cluster_state:ok/.test(String(await admin.call('CLUSTER', 'INFO'))), 'the cluster');
    const store = open(node.url);
    await walk(store, async () => {});
    const keys = await admin.keys('*');
    const slots = await Promise.all(keys.map((key) => admin.cluster('KEYSLOT', key)));
    expect(keys.length).toBeGreaterThan(5);
    expect(new Set(slots).size).toBe(1);
  });
});
