import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { LeasePolicy, LeaseStore, StartReply } from '../../src/leases/lease-store.ts';
import { RedisLeaseStore } from '../../src/leases/redis-store.ts';
import { C1, ENGINE, ID, IDENTITY, POLICY, URL1 } from './lease-harness.ts';
import { RedisServer, type RedisServerOptions, until } from './redis.ts';

export interface StoreOptions {
  readonly url?: string;
  readonly owner?: string;
  readonly deployment?: string;
  readonly policy?: Partial<LeasePolicy>;
  readonly commandTimeoutMs?: number;
}

export const KEY_PREFIX = 'stores';

/** A Redis server for a file or for each of its tests, with a plain client and stores that are closed before it ends. */
export interface RedisOfTests {
  readonly server: RedisServer;
  readonly client: Redis;
  readonly resources: AsyncDisposableStack;
  open(options?: StoreOptions): RedisLeaseStore;
}

export function useRedis(scope: 'the file' | 'each test', options: RedisServerOptions = {}): RedisOfTests {
  let resources: AsyncDisposableStack;
  let server: RedisServer;
  let client: Redis;
  const [before, after] = scope === 'the file' ? [beforeAll, afterAll] : [beforeEach, afterEach];
  before(async () => {
    resources = new AsyncDisposableStack();
    server = resources.use(await RedisServer.start(options));
    client = server.client();
    resources.defer(() => client.disconnect());
  });
  after(() => resources.disposeAsync());
  return {
    get server() {
      return server;
    },
    get client() {
      return client;
    },
    get resources() {
      return resources;
    },
    open: ({ url = server.url, owner = 'host:a', deployment = 'd', policy = {}, commandTimeoutMs = 2_000 } = {}) => {
      const store = new RedisLeaseStore({
        address: { url, sentinels: [], sentinelName: null, commandTimeoutMs },
        keyPrefix: KEY_PREFIX,
        deployment,
        owner: asOwnerId(owner),
        policy: { ...POLICY, ...policy },
      });
      resources.defer(() => store.close());
      return store;
    },
  };
}

export const answering = (store: LeaseStore): Promise<void> =>
  until(
    () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    'the store to answer',
  );

export const take = (store: LeaseStore) => store.take({ id: ID, identity: IDENTITY, spec: 's' });

const owned = { profile: null, userId: null, threadId: null, spec: null, createdAt: null };
/** A container that was found, as the store is told of it. */
export const FOUND = { container: C1, engine: ENGINE, url: URL1, since: 0 as Fence, ...owned };

/** Brings the sandbox to a running container, with one hold. */
export async function ready(store: LeaseStore): Promise<Fence> {
  const { fence } = (await take(store)) as StartReply;
  await store.activate({ id: ID, fence, ...FOUND, found: false, since: fence, holdMs: 900_000 });
  return fence;
}

export async function recordOf(store: LeaseStore) {
  const snapshot = await store.read(ID);
  if (snapshot.kind !== 'record') throw new Error(snapshot.kind);
  return snapshot.record;
}
