import { randomUUID } from 'node:crypto';
import { defaultConfig } from '../../src/config/load-config.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { sandboxId } from '../../src/domain/identity.ts';
import { asOwnerId, type SandboxId } from '../../src/domain/ids.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { MemoryDatabase } from '../../src/leases/memory-database.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { assembleLifecycle } from '../../src/lifecycle/assemble.ts';
import type { AcquireOutcome } from '../../src/service/api.ts';
import { Handouts } from '../../src/service/handouts.ts';
import { FakeEngine } from '../fakes/fake-engine.ts';
import { ManualClock } from './manual-clock.ts';
import { withPoints } from './points.ts';

export const DEPLOYMENT = 'world';
export const LEASE_MS = 30_000;
export const HOLD_MS = 900_000;
export const IDLE_MS = 600_000;

const SETTINGS = {
  leaseMs: LEASE_MS,
  holdTtlMs: HOLD_MS,
  idleMs: IDLE_MS,
  reconcileIntervalMs: 30_000,
  startTimeoutMs: 120_000,
  parallelStarts: 4,
  maxSandboxes: 100,
  maxPerUser: 0,
  waitTimeoutMs: 0,
};

export type WorldSettings = typeof SETTINGS;
export type Replica = ReturnType<World['replica']>;

/** Several replicas' real lifecycle code over one memory store and one fake engine, on a clock that the test moves. */
export class World {
  readonly clock = new ManualClock();
  readonly engine = new FakeEngine({ now: () => this.clock.wall() });
  readonly settings: WorldSettings;
  readonly database: MemoryDatabase;
  readonly profile: Profile;
  readonly noLabels = { profile: null, spec: null, owner: null, fence: null, userId: null, threadId: null };

  constructor(settings: Partial<WorldSettings> = {}) {
    this.settings = { ...SETTINGS, ...settings };
    const { leaseMs, holdTtlMs, maxSandboxes, maxPerUser } = this.settings;
    const policy = { leaseMs, holdTtlMs, maxSandboxes, maxPerUser };
    this.database = new MemoryDatabase({ clock: this.clock, newId: randomUUID, policy });
    this.database.census(this.database.life(), []); // as if the fleet had run for a while
    const profile = defaultConfig({}).profiles.get('default');
    if (profile === undefined) throw new Error('the default configuration has no default profile');
    this.profile = profile;
  }

  /** `peers`: whether it believes that others may own what has no record. `spec`: what its profile makes. */
  replica(name: string, { peers = true, spec = 'spec-1', onSpecChange = this.profile.onSpecChange, spares = 0 } = {}) {
    const { clock, settings, database } = this;
    const profile = { ...this.profile, onSpecChange, spares };
    const own = new MemoryLeaseStore({ database, owner: asOwnerId(name) });
    Object.defineProperty(own, 'seesPeers', { value: peers });
    const { port: store, points: storePoints } = withPoints(own);
    const runtime = this.engine.replica(DEPLOYMENT);
    const events: BrokerEvent[] = [];
    const emit = (event: BrokerEvent): void => void events.push(event);
    const profiles = new Map([['default', { profile, spec }]]);
    const capacity = {
      max: settings.maxSandboxes,
      perUser: settings.maxPerUser,
      waitTimeoutMs: settings.waitTimeoutMs,
    };
    const random = (): number => 0.5;
    const lifecycle = assembleLifecycle({
      store,
      runtime,
      settings: { ...settings, capacity, profiles },
      clock,
      random,
      emit,
    });
    const drained = new AbortController();
    const { acquire, turns, tasks } = lifecycle;
    const handouts = new Handouts({
      ...{ store, acquire, turns, tasks, clock, emit, deployment: DEPLOYMENT, waitMs: 50_000, drained: drained.signal },
      idleMs: settings.idleMs,
      profiles,
    });
    const take = (user: string, waitMs?: number, gone = new AbortController().signal): Promise<AcquireOutcome> =>
      handouts.acquire({ userId: user, threadId: 'thread', ...(waitMs === undefined ? {} : { waitMs }) }, { gone });
    return { name, store, storePoints, runtime, points: runtime.points, events, drained, handouts, take, ...lifecycle };
  }

  idOf(user: string): SandboxId {
    return sandboxId({ deployment: DEPLOYMENT, profile: 'default', userId: user, threadId: 'thread' });
  }

  /** The record as it is stored; null: none. */
  record(user: string): LeaseRecord | null {
    const entry = this.database.entry(this.idOf(user));
    return entry === null || 'kind' in entry ? null : entry;
  }

  /** Lets time pass with the replicas' renewals going on, as their loops do. */
  async pass(ms: number, ...replicas: readonly Replica[]): Promise<void> {
    const step = this.settings.leaseMs / 3;
    for (let left = ms; left > 0; left -= step) {
      await this.clock.advance(Math.min(step, left));
      for (const replica of replicas) await replica.renewal.pass();
    }
  }
}

/** The outcome of an acquire that must have been answered with a usable sandbox. */
export function handedOut(outcome: AcquireOutcome): Extract<AcquireOutcome, { kind: 'ready' }> {
  if (outcome.kind !== 'ready') throw new Error(`expected a sandbox, got ${outcome.kind}`);
  return outcome;
}
