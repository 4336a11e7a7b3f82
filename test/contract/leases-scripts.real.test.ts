import { describe, expect, test } from 'vitest';
import type { Fence } from '../../src/domain/ids.ts';
import type { LeaseStore, Spare } from '../../src/leases/lease-store.ts';
import { C1, ENGINE, ID, URL1 } from '../support/lease-harness.ts';
import { RedisServer, until } from '../support/redis.ts';
import { answering, FOUND, ready, recordOf, take, useRedis } from '../support/redis-stores.ts';

const redis = useRedis('each test');

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
    const activation = { id: ID, fence, ...FOUND, found: false, since: fence, holdMs: 1_000 };
    expect(await call(() => store.activate(activation))).toMatchObject({ state: 'ready' });
    expect(await call(() => store.verify(ID, C1, URL1))).toMatchObject({ verified: true });
    expect(await call(() => store.keepalive(ID, fence))).toMatchObject({ state: 'ready' });
    expect(await call(() => store.renew([{ id: ID, fence }]))).toEqual(new Map([[ID, 'renewed']]));
    expect(await call(() => store.release(ID, fence))).toMatchObject({ state: 'ready' });
    await call(() => store.handover([ID]));
    expect(await call(() => store.adopt({ id: ID, container: null }))).toMatchObject({ fence });
    expect(await call(() => store.reassert({ id: ID, fence: (fence + 1) as Fence, ...FOUND }))).toMatchObject({
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
    const store = redis.open();
    await walk(store, async () => {});
    await redis.client.flushall();
    await walk(store, () => redis.client.script('FLUSH'));
  });

  test('[L-21] survive a restart', async () => {
    const store = redis.open();
    await walk(store, async () => {});
    await redis.server.stop();
    await redis.server.start();
    await answering(store);
    await walk(store, async () => {});
  });

  test('[L-21] touch keys of one slot only, so that they run on a cluster node', async () => {
    await using node = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
    const admin = node.client();
    redis.resources.defer(() => admin.disconnect());
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until(async () => /cluster_state:ok/.test(String(await admin.call('CLUSTER', 'INFO'))), 'the cluster');
    const store = redis.open({ url: node.url });
    await walk(store, async () => {});
    const keys = await admin.keys('*');
    const slots = await Promise.all(keys.map((key) => admin.cluster('KEYSLOT', key)));
    expect(keys.length).toBeGreaterThan(5);
    expect(new Set(slots).size).toBe(1);
  });
});
