import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { sandboxId } from '../../src/domain/identity.ts';
import { asContainerId, asEngineMark, asOwnerId, type Fence, NO_FENCE, type SandboxId } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import type { FoundContainer, LeasePolicy, LeaseStore, StartReply } from '../../src/leases/lease-store.ts';
import { MemoryDatabase } from '../../src/leases/memory-database.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { encodeRecord, type RecordFields } from '../../src/leases/record-fields.ts';

/** One store with one deployment of its own, and what a test may do behind its back. */
export interface LeaseHarness {
  /** A handle of its own for a replica of this name. */
  open(owner: string): LeaseStore;
  /** Moves all times of a record so many milliseconds into the past, its physical end included. */
  age(id: SandboxId, ms: number): Promise<void>;
  /** As if the last renewal pass were so much longer ago. */
  ageLife(ms: number): Promise<void>;
  /** Ends the present life. */
  endLife(): Promise<void>;
  /** Stores a record as these fields say, whether or not it can be read. */
  plant(id: SandboxId, fields: Partial<RecordFields>): Promise<void>;
  /** Everything stored of one record, its physical end included; null: nothing is. */
  dump(id: SandboxId): Promise<string | null>;
  close(): Promise<void>;
}
export type MakeHarness = (policy: LeasePolicy) => Promise<LeaseHarness>;

export const POLICY: LeasePolicy = { leaseMs: 30_000, holdTtlMs: 900_000, maxSandboxes: 0, maxPerUser: 0 };

/** The memory store, on a clock that stands still unless a test moves it. */
export async function memoryHarness(policy: LeasePolicy): Promise<LeaseHarness> {
  const start = Date.UTC(2030, 0, 1);
  const clock = { wall: () => start, monotonic: () => 0 };
  const database = new MemoryDatabase({ clock, newId: randomUUID, policy });
  const recordOf = (id: SandboxId) => {
    const entry = database.entry(id);
    if (entry === null || 'kind' in entry) throw new Error(`no readable record of ${id}`);
    return entry;
  };
  return {
    open: (owner) => new MemoryLeaseStore({ database, owner: asOwnerId(owner) }),
    age: async (id, ms) => database.put(aged(recordOf(id), ms)),
    ageLife: async (ms) => database.extendLife(database.lifeAge() + ms),
    endLife: async () => database.extendLife(policy.leaseMs),
    plant: async (id, fields) => database.plant(id, fields),
    dump: async (id) => {
      const entry = database.entry(id);
      return entry === null ? null : JSON.stringify('kind' in entry ? entry : encodeRecord(entry));
    },
    close: async () => {},
  };
}

/** The record as it would be, had everything happened so much earlier. */
export function aged(record: LeaseRecord, ms: number): LeaseRecord {
  return {
    ...record,
    expiresAt: record.expiresAt - ms,
    idleSince: record.idleSince - ms,
    lastActiveAt: record.lastActiveAt - ms,
    createdAt: record.createdAt - ms,
    holds: new Map([...record.holds].map(([hold, until]) => [hold, until - ms])),
  };
}

export const ENGINE = asEngineMark('engine-1');
export const C1 = asContainerId('c1'.repeat(32));
export const C2 = asContainerId('c2'.repeat(32));
export const URL1 = 'http://127.0.0.1:32768';
export const IDENTITY = { deployment: 'd', profile: 'default', userId: 'u/é"', threadId: 't:1' };
export const ID = sandboxId(IDENTITY);
export const HOUR = 3_600_000;

export function otherIdentity(threadId: string, userId = IDENTITY.userId) {
  const identity = { ...IDENTITY, userId, threadId };
  return { identity, id: sandboxId(identity) };
}

/** Two replicas and the sandbox S of one identity. */
export class Scene {
  readonly harness: LeaseHarness;
  readonly a: LeaseStore;
  readonly b: LeaseStore;

  constructor(harness: LeaseHarness) {
    this.harness = harness;
    this.a = harness.open('host:a');
    this.b = harness.open('host:b');
  }

  take(store: LeaseStore = this.a, known: Fence = NO_FENCE) {
    return store.take({ id: ID, identity: IDENTITY, spec: 'spec-1', known });
  }

  /** S `starting`, `store`'s. */
  async starting(store: LeaseStore = this.a): Promise<StartReply> {
    const reply = await this.take(store);
    if (reply.kind !== 'starting') throw new Error(`expected a start, got ${reply.kind}`);
    return reply;
  }

  activation(fence: Fence, found = false, container = C1) {
    const about = { container, engine: ENGINE, url: URL1, spec: 'spec-1', createdAt: null };
    return { id: ID, fence, ...about, found, since: fence, holdMs: POLICY.holdTtlMs };
  }

  /** S `ready` and held, `store`'s. */
  async ready(store: LeaseStore = this.a, container = C1): Promise<LeaseRecord> {
    const { fence } = await this.starting(store);
    const record = await store.activate(this.activation(fence, false, container));
    if (record === 'moved') throw new Error('activation was refused');
    return record;
  }

  /** S `ready` and unheld, `store`'s. */
  async unheld(store: LeaseStore = this.a): Promise<LeaseRecord> {
    const { fence } = await this.ready(store);
    const record = await store.release(ID, fence);
    if (record === 'not_found') throw new Error('release found nothing');
    return record;
  }

  /** S `destroying`, `store`'s. */
  async destroying(store: LeaseStore = this.a): Promise<LeaseRecord> {
    const { fence } = await this.unheld(store);
    await store.claim(ID, fence, { kind: 'idle', unheldMs: 0 });
    return this.record();
  }

  /** S a tombstone, `store`'s. */
  async tombstone(store: LeaseStore = this.a): Promise<LeaseRecord> {
    const { fence } = await this.destroying(store);
    await store.drop(ID, fence, null);
    return this.record();
  }

  found(container = C1): FoundContainer {
    const { profile, userId, threadId } = IDENTITY;
    const about = { profile, userId, threadId, spec: 'spec-1', createdAt: Date.UTC(2029, 0, 1) };
    return { container, engine: ENGINE, url: URL1, since: NO_FENCE, ...about };
  }

  async record(id: SandboxId = ID): Promise<LeaseRecord> {
    const snapshot = await this.a.read(id);
    if (snapshot.kind !== 'record') throw new Error(`expected a record, got ${snapshot.kind}`);
    return snapshot.record;
  }

  async state(id: SandboxId = ID): Promise<string> {
    const snapshot = await this.a.read(id);
    return snapshot.kind === 'record' ? snapshot.record.state : snapshot.kind;
  }

  /** The store's clock. */
  async now(): Promise<number> {
    return (await this.a.read(ID)).now;
  }

  expire(ms: number = POLICY.leaseMs): Promise<void> {
    return this.harness.age(ID, ms);
  }

  /** Runs `act` and expects that nothing at all of S's record was changed by it. */
  async expectUnchanged<T>(act: () => Promise<T>): Promise<T> {
    const before = await this.harness.dump(ID);
    const result = await act();
    expect(await this.harness.dump(ID)).toBe(before);
    return result;
  }
}

/** Equal up to what passes while a test runs against a real clock. */
export function expectAbout(actual: number, expected: number): void {
  expect(Math.abs(actual - expected), `${actual} is not about ${expected}`).toBeLessThan(5_000);
}
