import { BrokerError } from '../../src/domain/errors.ts';
import type { HoldId, SandboxId } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import type { Random } from '../../src/domain/timing.ts';
import { HOLD_MS, IDLE_MS, LEASE_MS, type Replica, World } from '../support/world.ts';

const STORE_CALLS = [
  ...(['take', 'activate', 'verify', 'restart', 'residue', 'release', 'adopt', 'claim', 'condemnByIntent'] as const),
  ...(['confirm', 'drop', 'end', 'renew', 'reassert', 'claimSpare', 'addSpare', 'retireSpare'] as const),
  ...(['census', 'readMany', 'page'] as const),
];
const ENGINE_CALLS = [
  ...(['look', 'list', 'create', 'start', 'waitReady', 'condemn', 'condemnSpare', 'createSpare'] as const),
  ...(['dedicate', 'giveBack', 'remove', 'postMortem', 'mark'] as const),
];
const USERS = ['u', 'v'];
const STEPS = 8;
/** Longer than the longest pause before a removal is tried again. */
const LONG_MS = 700_000;
const never = new AbortController().signal;

/** What happened in one life of a small fleet, and what is left when everything should be gone. */
export interface Outcome {
  readonly told: readonly string[];
  readonly left: readonly string[];
}

/**
 * Two replicas, two users, and eight things that happen to them in an order that `random` decides: calls of clients, ends
 * of containers, calls of store and engine that fail before or after their effect, losses and copies of the store, a crash.
 * Then nothing more happens, for so long that every hold, lease and pause is over.
 */
export async function liveThrough(random: Random): Promise<Outcome> {
  const fleet = new Mishaps(random);
  await fleet.loops(LEASE_MS);
  for (let step = 0; step < STEPS; step += 1) await fleet.step();
  await fleet.loops(HOLD_MS + IDLE_MS + 11 * LEASE_MS + LONG_MS);
  return fleet.outcome();
}

class Mishaps {
  readonly #random: Random;
  readonly #world = new World({ maxSandboxes: 3, waitTimeoutMs: 5_000, parallelStarts: 2 });
  readonly #spares: boolean;
  readonly #replicas: readonly [Replica, Replica];
  readonly #following = new AbortController();
  readonly #told: string[] = [];
  readonly #holds: { readonly id: SandboxId; readonly hold: HoldId }[] = [];
  #copy: readonly LeaseRecord[] = [];
  #crashed = false;

  constructor(random: Random) {
    this.#random = random;
    this.#spares = random() < 0.5;
    const options = { spares: this.#spares ? 1 : 0 };
    this.#replicas = [this.#world.replica('a', options), this.#world.replica('b', options)];
    for (const { liveness } of this.#replicas) void liveness.follow(this.#following.signal).catch(() => undefined);
  }

  /** Everything that a replica does by itself, for so long. */
  async loops(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= LEASE_MS / 3) {
      await this.#world.clock.advance(LEASE_MS / 3);
      for (const { renewal, reconciler, reaper, spares } of this.#alive()) {
        await renewal.pass().catch(() => undefined);
        await reconciler.pass().catch(() => undefined);
        await reaper.pass().catch(() => undefined);
        if (this.#spares) await spares.pass(never).catch(() => undefined);
      }
      await this.#world.clock.settle();
    }
  }

  async step(): Promise<void> {
    const replica = this.#pick(this.#alive());
    if (this.#random() < 0.5) this.#failLater(replica);
    const events = Object.keys(EVENTS) as (keyof typeof EVENTS)[];
    const event = this.#pick(events);
    const user = this.#pick(USERS);
    this.#told.push(`${replica.store.owner} ${event} ${user}`);
    await EVENTS[event](this.#hands(replica, user));
    if (this.#random() < 0.7) await this.#world.clock.advance(this.#pick([0, 10, 200, 4_000]));
  }

  async outcome(): Promise<Outcome> {
    this.#following.abort();
    const { sandboxes } = await this.#replicas[0].store.pool();
    const { engine } = this.#world;
    const isSpare = (name: string): boolean => this.#spares && name.startsWith('sandbox-spare');
    const containers = engine.containers.filter(({ name, state }) => !(isSpare(name) && state === 'running'));
    const records = USERS.map((user) => this.#world.record(user)).filter((record) => record !== null);
    const busy = this.#alive().filter(
      ({ turns, tasks, tracked, admission }) => turns.size + tasks.size + tracked.size + admission.waiting > 0,
    );
    return {
      told: this.#told,
      left: [
        ...containers.map(({ name, state }) => `container ${name} ${state}`),
        ...records
          .filter(({ state }) => state !== 'gone')
          .map(({ id, state, owner }) => `record ${id} ${state} ${owner}`),
        ...(sandboxes > 0 ? ['a slot'] : []),
        ...busy.map(({ store }) => `something that replica ${store.owner} remembers`),
      ],
    };
  }

  #failLater({ store, storePoints, points }: Replica): void {
    const when = this.#random() < 0.6 ? 'after' : 'before';
    const ofStore = this.#random() < 0.6;
    const call = ofStore ? this.#pick(STORE_CALLS) : this.#pick(ENGINE_CALLS);
    this.#told.push(`${store.owner}'s next ${call} fails ${when} its effect`);
    if (ofStore) storePoints.failNext(call as (typeof STORE_CALLS)[number], storeDown(), when);
    else points.failNext(call as (typeof ENGINE_CALLS)[number], engineDown(), when);
  }

  #hands(replica: Replica, user: string): Hands {
    const world = this.#world;
    const running = (spare: boolean) =>
      world.engine.containers.filter(({ name, state }) => state === 'running' && name.includes('spare') === spare);
    const remove = (): void => {
      for (const { id } of this.#records()) world.database.remove(id);
      world.database.beginLife();
    };
    return {
      replica,
      user,
      settle: () => world.clock.settle(),
      id: world.idOf(user),
      keep: (hold) => void this.#holds.push(hold),
      hold: () => (this.#holds.length === 0 ? null : this.#pick(this.#holds)),
      pass: () => this.loops(LEASE_MS / 3),
      kill: (spare) => {
        const victims = running(spare);
        if (victims.length > 0) world.engine.kill(this.#pick(victims).id);
      },
      copy: () => {
        this.#copy = this.#records();
      },
      lose: remove,
      goBack: () => {
        remove();
        for (const record of this.#copy) world.database.put(record);
      },
      crash: () => this.#crash(),
    };
  }

  #crash(): void {
    this.#crashed = true;
    const [, { storePoints, points }] = this.#replicas;
    for (const call of STORE_CALLS) storePoints.break(call, storeDown);
    for (const call of ENGINE_CALLS) points.break(call, engineDown);
  }

  #records(): readonly LeaseRecord[] {
    return [...this.#world.database.entries().values()].filter((entry): entry is LeaseRecord => !('kind' in entry));
  }

  #alive(): readonly Replica[] {
    return this.#crashed ? [this.#replicas[0]] : this.#replicas;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)]!;
  }
}

const storeDown = (): BrokerError => new BrokerError('store_unavailable', 'no answer');
const engineDown = (): BrokerError => new BrokerError('runtime_timeout', 'no answer');

/** What an event may do. */
interface Hands {
  readonly replica: Replica;
  readonly user: string;
  readonly id: SandboxId;
  readonly settle: () => Promise<void>;
  readonly keep: (hold: { readonly id: SandboxId; readonly hold: HoldId }) => void;
  readonly hold: () => { readonly id: SandboxId; readonly hold: HoldId } | null;
  readonly pass: () => Promise<void>;
  readonly kill: (spare: boolean) => void;
  readonly copy: () => void;
  readonly lose: () => void;
  readonly goBack: () => void;
  readonly crash: () => void;
}

function acquire({ replica, user, keep }: Hands, waitMs: number): void {
  void replica.take(user, waitMs).then(
    (outcome) => outcome.kind === 'ready' && keep({ id: outcome.sandbox.id, hold: outcome.hold }),
    () => undefined,
  );
}

const EVENTS = {
  acquires: async (hands: Hands) => acquire(hands, 3_000),
  'acquires without waiting': async (hands: Hands) => acquire(hands, 0),
  'hangs up': async ({ replica, user, settle }: Hands) => {
    const gone = new AbortController();
    void replica.take(user, 3_000, gone.signal).catch(() => undefined);
    await settle();
    gone.abort();
  },
  releases: async ({ replica, hold }: Hands) => {
    const held = hold();
    if (held !== null) await replica.store.release(held.id, held.hold).catch(() => undefined);
  },
  destroys: async ({ replica, id }: Hands) => void replica.destroy.run(id).catch(() => undefined),
  'sees a sandbox die': async ({ kill }: Hands) => kill(false),
  'sees a spare die': async ({ kill }: Hands) => kill(true),
  'goes on': ({ pass }: Hands) => pass(),
  'sees the store copied': async ({ copy }: Hands) => copy(),
  'sees the store go back': async ({ goBack }: Hands) => goBack(),
  'sees the store lost': async ({ lose }: Hands) => lose(),
  'sees b crash': async ({ crash }: Hands) => crash(),
} as const;
