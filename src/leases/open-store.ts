import type { Emit } from '../domain/events.ts';
import type { OwnerId } from '../domain/ids.ts';
import type { Clock, NewId } from '../domain/timing.ts';
import type { LeasePolicy, LeaseStore } from './lease-store.ts';
import { MemoryDatabase } from './memory-database.ts';
import { lockDeployment } from './memory-lock.ts';
import { MemoryLeaseStore } from './memory-store.ts';
import { RedisLeaseStore } from './redis-store.ts';

export interface StoreConfig {
  readonly type: 'memory' | 'redis';
  readonly deployment: string;
  readonly policy: LeasePolicy;
  readonly url: string | null;
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  readonly sentinelName: string | null;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
}

export interface OpenStoreOptions {
  readonly config: StoreConfig;
  readonly owner: OwnerId;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly emit: Emit;
}

export interface OpenStore {
  readonly store: LeaseStore;
  /** Ends the store and what it holds on to. */
  close(): Promise<void>;
}

/** The lease store that the configuration asks for. Waits for no server. Rejects with `DeploymentTaken`. */
export async function openStore({ config, owner, clock, newId, emit }: OpenStoreOptions): Promise<OpenStore> {
  if (config.type === 'redis') {
    const { keyPrefix, deployment, policy } = config;
    const store = new RedisLeaseStore({ address: config, keyPrefix, deployment, owner, policy, emit });
    return { store, close: () => store.close() };
  }
  const lock = await lockDeployment(config.deployment);
  const store = new MemoryLeaseStore({ database: new MemoryDatabase({ clock, newId, policy: config.policy }), owner });
  const close = async (): Promise<void> => {
    await store.close();
    await lock.release();
  };
  return { store, close };
}
