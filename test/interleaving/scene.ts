import type { BrokerEvent } from '../../src/domain/events.ts';
import { sandboxId } from '../../src/domain/identity.ts';
import { asOwnerId, type ContainerId } from '../../src/domain/ids.ts';
import { sandboxName, spareName } from '../../src/domain/names.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import type { LeaseStore } from '../../src/leases/lease-store.ts';
import { MemoryDatabase } from '../../src/leases/memory-database.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { newRecord } from '../../src/leases/transition.ts';
import { assembleLifecycle } from '../../src/lifecycle/assemble.ts';
import type { Wanted } from '../../src/lifecycle/handout.ts';
import type { ContainerRuntime } from '../../src/runtime/container-runtime.ts';
import { FakeEngine } from '../fakes/fake-engine.ts';
import { tinyProfile } from '../support/profiles.ts';
import { Scheduler, SteppedClock } from '../support/scheduler.ts';
import { Fingerprint } from './fingerprint.ts';
import { Judge } from './judge.ts';

export const LEASE_MS = 30_000;
export const HOLD_MS = 900_000;
export const DEPLOYMENT = 'd';
export const PREFIX = 'sandbox';
export const OWNERS = ['a', 'b'] as const;
export const SPEC = 'spec';

const profile = tinyProfile('image');
export const IDENTITY = { deployment: DEPLOYMENT, profile: profile.name, userId: 'u', threadId: 't' };
export const ID = sandboxId(IDENTITY);
export const WANTED = { id: ID, identity: IDENTITY, profile, spec: SPEC };
export const policy = { leaseMs: LEASE_MS, holdTtlMs: HOLD_MS, maxSandboxes: 0, maxPerUser: 0 };

export const STARTS = ['warm', 'active', 'orphan', 'dead', 'none'] as const;
/** No sandbox yet, and one spare in the pool. */
export const SPARED = 'spare' as const;
export type Start = (typeof STARTS)[number] | typeof SPARED;
export type Replica = ReturnType<Scene['replica']>;

/** What a rule taken away does to a replica's ports, before their calls become steps. */
export interface Ports {
  readonly store: LeaseStore;
  readonly runtime: ContainerRuntime;
}
export type Mutation = (ports: Ports, scene: Scene) => Ports;

/**
 * Calls that are no steps: they read only what never changes in a scene (which engine this is, that its image is
 * there), or what decides nothing (how a container ended). They commute with everything, so nothing is lost.
 */
const NOT_STEPS = new Set(['mark', 'settleEngine', 'ensureImage', 'hasImage', 'postMortem', 'listen']);

/** Two replicas' lifecycle over one memory store and one fake engine, one sandbox, every call a step. */
export class Scene {
  readonly scheduler = new Scheduler();
  readonly clock = new SteppedClock(this.scheduler);
  readonly database: MemoryDatabase;
  readonly engine = new FakeEngine({ now: () => this.clock.wall() });
  readonly judge: Judge;
  readonly replicas: readonly Replica[];
  /** A client's way to the store, through whatever replica is there. */
  readonly client: MemoryLeaseStore;
  /** What its acquires ask for. */
  readonly wanted: Wanted;
  /** Aborted when the callers' patience is at its end. */
  readonly patience = new AbortController();
  readonly crashed = new Set<number>();
  /** Replicas that think of every container that it runs where it ran: no event has reached them yet. */
  readonly followsLate = new Set<number>();
  /** Of everything that a replica was told, in its order: what it remembers depends on nothing else. */
  readonly histories = OWNERS.map(() => new Fingerprint());
  /** Every state that the record was in; the last one is the present. */
  readonly versions: (LeaseRecord | null)[] = [];
  readonly events: BrokerEvent[] = [];
  readonly #mutation: Mutation | null;
  readonly #urls = new Map<ContainerId, string>();
  #lives = 0;
  #world = 0;

  constructor(start: Start, { mutation = null, explicit }: { mutation?: Mutation | null; explicit: boolean }) {
    this.#mutation = mutation;
    this.wanted = start === SPARED ? { ...WANTED, profile: { ...profile, spares: 1 } } : WANTED;
    const newId = (): string => {
      this.#lives += 1;
      return `life-${this.#lives}`;
    };
    this.database = new MemoryDatabase({ clock: this.clock, newId, policy });
    this.database.engine = this.engine.mark(DEPLOYMENT);
    this.judge = new Judge(this, explicit);
    this.client = new MemoryLeaseStore({ database: this.database, owner: asOwnerId('client') });
    this.replicas = OWNERS.map((_, index) => this.replica(index));
    this.#arrange(start);
    this.changed();
  }

  record(): LeaseRecord | null {
    const entry = this.database.entry(ID);
    return entry === null || 'kind' in entry ? null : entry;
  }

  /** The step in which an operation looks at what its replica remembers. */
  remember(replica: number): Promise<void> {
    const { scheduler } = this;
    return scheduler.step('remember', () => void this.histories[replica]?.number(scheduler.current?.id ?? -1));
  }

  /** Notes what the world has become. */
  changed(): void {
    const record = this.record();
    if (this.versions.length === 0 || this.versions.at(-1) !== record) this.versions.push(record);
    const hash = new Fingerprint().record(record).text(this.database.life()).number(this.clock.monotonic());
    for (const { name, state, id, port } of this.engine.containers) {
      hash.text(id.slice(8, 12)).text(name).text(state);
      if (port !== null) this.#urls.set(id, `http://127.0.0.1:${port}`);
    }
    for (const { container } of this.database.spares.waiting) hash.text(container.slice(8, 12));
    if (hash.value !== this.#world) this.scheduler.changes += 1;
    this.#world = hash.value;
  }

  /** A lease goes by, in which somebody kept the store's life going. Who did not renew meanwhile has lost its lease. */
  passLease(ms = LEASE_MS): void {
    this.clock.advance(ms);
    this.database.extendLife();
  }

  /** Equal for two scenes that will go on alike. `history`: what else the search may still do with the past. */
  fingerprint(history: boolean): number {
    const { scheduler, judge } = this;
    const hash = new Fingerprint().number(this.#world).number(scheduler.current?.id ?? -1);
    for (const replica of this.histories) hash.number(replica.value);
    for (const thread of scheduler.threads) {
      const { stop } = thread;
      hash.number(stop === null ? 0 : stop.kind === 'call' ? 1 : scheduler.canGoOn(thread) ? 2 : 3);
      hash.number(thread.replica ?? -1);
      if (stop !== null) hash.text(stop.label);
    }
    for (const replica of this.crashed) hash.number(replica);
    hash.number(this.crashed.size).any(this.patience.signal.aborted);
    judge.addTo(hash);
    if (history) for (const version of this.versions) hash.record(version);
    return hash.value;
  }

  replica(index: number) {
    const { clock, database, engine } = this;
    const own = new MemoryLeaseStore({ database, owner: asOwnerId(OWNERS[index] ?? '') });
    Object.defineProperty(own, 'seesPeers', { value: true });
    const bare: Ports = { store: own, runtime: engine.replica(DEPLOYMENT, PREFIX) };
    const ports = this.#mutation?.(bare, this) ?? bare;
    const store = this.#stepped(ports.store, index);
    const runtime = this.#stepped(ports.runtime, index);
    const settings = {
      ...{ leaseMs: LEASE_MS, holdTtlMs: HOLD_MS, idleMs: 0, reconcileIntervalMs: LEASE_MS, startTimeoutMs: 1 },
      ...{
        parallelStarts: 4,
        capacity: { max: 0, perUser: 0, waitTimeoutMs: 0 },
        profiles: new Map([[profile.name, { profile, spec: WANTED.spec }]]),
      },
    };
    const emit = (event: BrokerEvent): void => void this.events.push(event);
    const lifecycle = assembleLifecycle({ store, runtime, settings, clock, random: () => 0, emit });
    const urlOf = (container: ContainerId): string | null =>
      this.followsLate.has(index) ? (this.#urls.get(container) ?? null) : null;
    Object.defineProperty(lifecycle.liveness, 'urlOf', { value: urlOf });
    return { index, store, runtime, emit, ...lifecycle };
  }

  #stepped<T extends object>(target: T, replica: number): T {
    const { scheduler, judge } = this;
    const history = this.histories[replica]!;
    const methods = new Map<string | symbol, unknown>();
    const call = async (name: string, method: (...args: never[]) => unknown, args: never[]): Promise<unknown> => {
      const before = judge.before();
      try {
        const reply = await Reflect.apply(method, target, args);
        history.number(scheduler.current?.id ?? -1).any(reply);
        judge.after(replica, name, args, reply, before);
        return reply;
      } catch (error) {
        history.any(error);
        throw error;
      }
    };
    return new Proxy(target, {
      get: (object, name) => {
        const known = methods.get(name);
        if (known !== undefined) return known;
        const value: unknown = Reflect.get(object, name, object);
        if (typeof value !== 'function' || typeof name !== 'string') return value;
        const method = value as (...args: never[]) => unknown;
        const stepped = NOT_STEPS.has(name)
          ? (...args: never[]) => Reflect.apply(method, object, args)
          : (...args: never[]) => scheduler.step(name, () => call(name, method, args));
        methods.set(name, stepped);
        return stepped;
      },
    });
  }

  #arrangeSpare(): void {
    const nobody = { fence: null, userId: null, threadId: null };
    const labels = { profile: profile.name, spec: SPEC, owner: asOwnerId(OWNERS[0]), ...nobody };
    const name = spareName(PREFIX, '1');
    const container = this.engine.add({ name, deployment: DEPLOYMENT, profile, labels });
    this.engine.run(container.id);
    const about = {
      engine: this.engine.mark(DEPLOYMENT),
      url: `http://127.0.0.1:${container.port}`,
      profile: profile.name,
    };
    this.database.spares.add(
      { container: container.id, name, ...about, spec: SPEC, createdAt: 0 },
      this.database.now(),
    );
  }

  #arrange(start: Start): void {
    if (start === 'none') return;
    if (start === SPARED) {
      this.#arrangeSpare();
      return;
    }
    const at = this.database.moment(ID, asOwnerId(OWNERS[0]));
    const fence = at.nextFence();
    const { profile: name, userId, threadId } = IDENTITY;
    const labels = { profile: name, spec: SPEC, owner: at.owner, fence, userId, threadId };
    const container = this.engine.add({ name: sandboxName(PREFIX, ID), deployment: DEPLOYMENT, profile, labels });
    this.engine.run(container.id);
    if (start === 'orphan') return;
    const holds = start === 'active' ? new Map([[fence, at.now + HOLD_MS]]) : new Map();
    const url = `http://127.0.0.1:${container.port}`;
    const record = newRecord(at, {
      ...{ state: 'ready', fence, container: container.id, engine: this.database.engine, url, holds },
      ...{ profile: name, userId, threadId, spec: SPEC, verified: start !== 'dead' },
    });
    this.database.put(record);
    this.replicas[0]!.tracked.remember(record, 0, true);
    if (start === 'dead') this.engine.kill(container.id);
    if (start === 'active') this.judge.arrives(container.id, fence);
  }
}
