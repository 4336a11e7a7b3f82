import * as fc from 'fast-check';
import { asContainerId, asEngineMark, asLife, type Fence } from '../../src/domain/ids.ts';
import type { ClaimCondition, FoundContainer, LeaseStore, Spare } from '../../src/leases/lease-store.ts';
import { HOUR, type IDENTITY, type LeaseHarness, otherIdentity, POLICY } from '../support/lease-harness.ts';

/**
 * One step of a random sequence. `n`: small numbers that choose among sandboxes, containers, kinds and the fences seen
 * so far, so that the same sequence means the same on every store.
 */
export interface Command {
  readonly kind: (typeof KINDS)[number];
  readonly by: 'a' | 'b';
  readonly n: readonly [number, number, number, number];
}

const KINDS = [
  ...['take', 'take', 'take', 'activate', 'activate', 'verify', 'restart', 'residue', 'keepalive', 'release'],
  ...['adopt', 'claim', 'claim', 'condemnByIntent', 'confirm', 'drop', 'drop', 'end', 'renew', 'reassert', 'handover'],
  ...[
    'census',
    'census',
    'unheld',
    'addSpare',
    'claimSpare',
    'retireSpare',
    'pool',
    'read',
    'page',
    'age',
    'age',
    'ageLife',
    'endLife',
    'plant',
  ],
] as const;

const small = fc.nat({ max: 11 });
export const commands: fc.Arbitrary<Command> = fc.record({
  kind: fc.constantFrom(...KINDS),
  by: fc.constantFrom('a', 'b'),
  n: fc.tuple(small, small, small, small),
});

const SANDBOXES = [otherIdentity('t1', 'u1'), otherIdentity('t2', 'u1'), otherIdentity('t3', 'u2')];
const CONTAINERS = ['c1', 'c2'].map(asContainerId);
const AGES = [10_000, POLICY.leaseMs, POLICY.holdTtlMs, HOUR];
const PLANTED = [{ v: '2' }, { v: '1' }, { v: '1', state: 'undead' }];
const WHY = { endedAt: 1, reason: 'x', exitCode: null, logTail: '"\n' };

/** Plays commands on one store, and tells what it answers in words that do not depend on its clock. */
export class Player {
  readonly #harness: LeaseHarness;
  readonly #stores: Readonly<Record<'a' | 'b', LeaseStore>>;
  readonly #fences: Fence[] = [0 as Fence];
  readonly #lives: string[] = [];
  #now = 0;

  constructor(harness: LeaseHarness) {
    this.#harness = harness;
    this.#stores = { a: harness.open('host:a'), b: harness.open('host:b') };
  }

  /** The memory store's first life begins with the store, that of Redis with its first operation. */
  async begin(): Promise<void> {
    await this.#stores.a.renew([]);
    await this.#stores.a.census(await this.#stores.a.beginCensus(), []);
  }

  async play({ kind, by, n }: Command): Promise<unknown> {
    const { id, identity } = pick(SANDBOXES, n[0]);
    this.#now = (await this.#stores.a.read(id)).now;
    return this.plain(await this.#call(kind, this.#stores[by], id, identity, n));
  }

  /** All records, as a read shows them. */
  async everything(): Promise<unknown> {
    const snapshots = await this.#stores.a.readMany(SANDBOXES.map(({ id }) => id));
    this.#now = snapshots[0]?.now ?? 0;
    return this.plain(snapshots);
  }

  /** Fences and lives by the order in which they were first seen, times by their distance from now. */
  plain(value: unknown, name = ''): unknown {
    if (value instanceof Map) return [...value].map(([key, to]) => [this.#key(key), this.plain(to, 'time')]);
    if (Array.isArray(value)) return value.map((item) => this.plain(item));
    if (typeof value === 'object' && value !== null && name !== 'previous') {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.plain(item, key)]));
    }
    if (name === 'life') return `life ${place(this.#lives, value as string)}`;
    if (typeof value !== 'number' || name === 'v' || value < 1_000) return value;
    return name === 'fence' || name === 'hold' || name === 'since' ? this.#key(value) : this.#time(value);
  }

  #key(value: unknown): unknown {
    return typeof value === 'number' ? `fence ${place(this.#fences, value as Fence)}` : value;
  }

  #time(value: number): string {
    return `${Math.round((value - this.#now) / 10_000)} · 10 s`;
  }

  async #call(
    kind: Command['kind'],
    store: LeaseStore,
    id: (typeof SANDBOXES)[number]['id'],
    identity: typeof IDENTITY,
    [, x, y, z]: Command['n'],
  ): Promise<unknown> {
    const recent = this.#fences.slice(-4);
    const fence = recent[recent.length - 1 - (x % recent.length)]!;
    const container = pick(CONTAINERS, y);
    const found = z % 3 === 0 ? null : foundContainer(container, fence, z);
    switch (kind) {
      case 'take':
        return store.take({
          ...{ id, identity, spec: 's' },
          ...(z === 0 ? { known: fence } : {}),
          ...(z === 1 ? { behind: pick(['fleet', 'user'] as const, y) } : {}),
        });
      case 'activate': {
        const about = { ...foundContainer(container, fence, 1), url: 'http://x', found: z % 2 === 0 };
        return store.activate({ id, fence, ...about, holdMs: pick(AGES, z) });
      }
      case 'verify':
        return store.verify(id, container, 'http://y');
      case 'restart':
        return store.restart(id, container, z % 2 === 0 ? WHY : null);
      case 'residue':
        return store.residue(id, fence, container);
      case 'keepalive':
        return store.keepalive(id, fence);
      case 'release':
        return store.release(id, fence);
      case 'adopt':
        return store.adopt({ id, container: found });
      case 'claim':
        return store.claim(id, fence, condition(z, y));
      case 'condemnByIntent':
        return store.condemnByIntent(id, z % 3 === 0 ? null : container);
      case 'confirm': {
        const about = { id, fence, container, engine: asEngineMark('e') };
        return store.confirm({ kind: pick(['teardown', 'residue', 'stray'] as const, z), ...about });
      }
      case 'drop':
        return store.drop(id, fence, z % 2 === 0 ? WHY : null);
      case 'end':
        return store.end(id, container, WHY);
      case 'renew':
        return store.renew(SANDBOXES.slice(0, z % 4).map((sandbox) => ({ id: sandbox.id, fence, ready: y % 2 === 0 })));
      case 'reassert':
        return store.reassert({ id, ...foundContainer(container, 0 as Fence, z), fence });
      case 'handover':
        return store.handover(SANDBOXES.slice(0, z % 4).map((sandbox) => sandbox.id));
      case 'census': {
        const began = z % 4 === 0 ? asLife('another') : await store.beginCensus();
        const running = SANDBOXES.filter((_, n) => (x >> n) % 2 === 1);
        return store.census(
          began,
          running.map((sandbox, n) => ({ id: sandbox.id, userId: n === y % 3 ? null : sandbox.identity.userId })),
        );
      }
      case 'unheld':
        return store.unheld(x % 2 === 0 ? null : identity.userId, 1 + (y % 3));
      case 'addSpare':
        return store.addSpare(spare(y, z));
      case 'claimSpare':
        return store.claimSpare(id, fence, 'p', pick(['s1', 's2'], z));
      case 'retireSpare':
        return store.retireSpare(spare(y, z).container);
      case 'pool': {
        const { spares, sandboxes } = await store.pool();
        return { sandboxes, spares: [...spares].sort((a, b) => (a.container < b.container ? -1 : 1)) };
      }
      case 'read':
        return store.read(id);
      case 'page':
        return store.page(z % 2 === 0 ? null : id, 1 + (y % 3));
      case 'age': {
        const snapshot = await store.read(id);
        return snapshot.kind === 'record' ? this.#harness.age(id, pick(AGES, z)) : undefined;
      }
      case 'ageLife':
        return this.#harness.ageLife(pick(AGES, z));
      case 'endLife':
        return z % 3 === 0 ? this.#harness.endLife() : undefined;
      case 'plant':
        return z === 0 ? this.#harness.plant(id, pick(PLANTED, y)) : undefined;
    }
  }
}

function condition(z: number, y: number): ClaimCondition {
  const container = pick([...CONTAINERS, null], y);
  const kinds: readonly ClaimCondition[] = [
    { kind: 'idle', unheldMs: pick([0, 10_000, POLICY.holdTtlMs], y) },
    { kind: 'shutdown' },
    { kind: 'replace' },
    { kind: 'replace' },
    { kind: 'capacity' },
    { kind: 'failed-start', container },
    { kind: 'expired', container },
    { kind: 'unsettled', container: pick(CONTAINERS, y) },
  ];
  return pick(kinds, z);
}

function foundContainer(container: FoundContainer['container'], since: Fence, z: number): FoundContainer {
  const about = { container, engine: asEngineMark('e'), url: z % 2 === 0 ? null : 'http://x', since, createdAt: null };
  return { ...about, profile: null, userId: z % 4 === 0 ? 'u1' : null, threadId: null, spec: z % 2 === 0 ? null : 's' };
}

function spare(y: number, z: number): Spare {
  const about = { engine: asEngineMark('e'), url: 'http://x', profile: 'p', spec: pick(['s1', 's2'], z) };
  return { container: asContainerId(`spare-${y % 3}`), name: `name-${y % 3}`, ...about, createdAt: 5 };
}

function pick<T>(all: readonly T[], n: number): T {
  return all[n % all.length]!;
}

/** Where in the list it stands; at its end, if it was not there. */
function place<T>(all: T[], value: T): number {
  const at = all.indexOf(value);
  return at === -1 ? all.push(value) - 1 : at;
}
