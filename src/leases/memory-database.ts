import { userHash } from '../domain/identity.ts';
import { asLife, type EngineMark, type Fence, type Life, type OwnerId, type SandboxId } from '../domain/ids.ts';
import { isAbsent, type LeaseRecord } from '../domain/sandbox.ts';
import type { Clock, NewId } from '../domain/timing.ts';
import type { LeasePolicy, News, NewsListener, RunningContainer } from './lease-store.ts';
import { MemoryHistory } from './memory-history.ts';
import { MemorySpares } from './memory-spares.ts';
import { decodeRecord, type RecordFields, type Unreadable } from './record-fields.ts';
import { NO_LIFE } from './snapshot.ts';
import { keptUntil, type Moment } from './transition.ts';
import type { Usage } from './transitions-acquire.ts';

export interface MemoryDatabaseOptions {
  readonly clock: Pick<Clock, 'wall' | 'monotonic'>;
  readonly newId: NewId;
  readonly policy: LeasePolicy;
}

/**
 * What all handles of one deployment share when the store lives in this process. Its clock starts at the wall's time
 * and follows the monotonic one, so it never goes back.
 */
export class MemoryDatabase {
  readonly policy: LeasePolicy;
  readonly spares = new MemorySpares();
  readonly history = new MemoryHistory(() => this.now());
  /** The first engine that was seen. */
  engine: EngineMark | null = null;

  readonly #entries = new Map<SandboxId, LeaseRecord | Unreadable>();
  readonly #counted = new Map<SandboxId, string | null>();
  readonly #perUser = new Map<string, number>();
  readonly #tombstones = new Map<SandboxId, number>();
  readonly #listeners = new Set<NewsListener>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #offset: number;
  readonly #newId: NewId;
  #sortedIds: readonly SandboxId[] | null = null;
  #lastFence = 0;
  /** The life in which the running containers were counted. */
  #countedIn: Life | null = null;
  #life: Life;
  #lifeEndsAt: number;

  constructor({ clock, newId, policy }: MemoryDatabaseOptions) {
    this.policy = policy;
    this.#clock = clock;
    this.#offset = clock.wall() - clock.monotonic();
    this.#newId = newId;
    this.#life = asLife(newId());
    this.#lifeEndsAt = this.now() + policy.leaseMs;
  }

  /** Milliseconds since the epoch, whole. */
  now(): number {
    return Math.floor(this.#offset + this.#clock.monotonic());
  }

  /** The present, for a step that may write: a life that has ended is followed by a new one. */
  moment(id: SandboxId, owner: OwnerId): Moment {
    this.settleLife();
    return {
      id,
      owner,
      now: this.now(),
      life: this.#life,
      policy: this.policy,
      nextFence: (...known) => this.#nextFence(known),
    };
  }

  /** The present life; for a read, which begins none. */
  life(): Life {
    return this.#lifeEndsAt > this.now() ? this.#life : NO_LIFE;
  }

  settleLife(): void {
    if (this.#lifeEndsAt <= this.now()) this.beginLife();
  }

  /** A new life, whatever became of the last one. */
  beginLife(): void {
    this.#life = asLife(this.#newId());
    this.extendLife();
  }

  /** How long ago the last renewal pass was here, in milliseconds. */
  lifeAge(): number {
    return this.now() - (this.#lifeEndsAt - this.policy.leaseMs);
  }

  /** A renewal pass was here; so many milliseconds ago. */
  extendLife(agoMs = 0): void {
    this.#lifeEndsAt = this.now() - agoMs + this.policy.leaseMs;
  }

  /** Null where nothing is stored, or only a tombstone that has nothing to tell any more. */
  entry(id: SandboxId): LeaseRecord | Unreadable | null {
    const entry = this.#entries.get(id) ?? null;
    if (entry === null || 'kind' in entry || entry.state !== 'gone') return entry;
    return keptUntil(entry, this.policy) > this.now() ? entry : null;
  }

  put(record: LeaseRecord): void {
    const { id } = record;
    this.#store(id, record);
    this.#lastFence = Math.max(this.#lastFence, record.fence);
    this.#count(id, record.state === 'gone' ? undefined : record.userId);
    this.#tombstones.delete(id);
    if (record.state === 'gone') this.#tombstones.set(id, keptUntil(record, this.policy));
    this.#removeOldTombstones();
  }

  remove(id: SandboxId): void {
    if (this.#entries.delete(id)) this.#sortedIds = null;
    this.#tombstones.delete(id);
    this.#count(id, undefined);
  }

  /** Stores a record as its fields say, also one that cannot be read: for tests. */
  plant(id: SandboxId, fields: Partial<RecordFields>): void {
    this.#store(id, decodeRecord(id, fields));
  }

  usage(userId: string): Usage {
    return { fleet: this.#counted.size, user: this.#perUser.get(userId) ?? 0 };
  }

  /** True if the sandbox counts against the limits, with or without a record. */
  counts(id: SandboxId): boolean {
    return this.#counted.has(id);
  }

  /** True if the running containers were counted in the present life. */
  get knowsWhatRuns(): boolean {
    return this.#countedIn === this.#life;
  }

  /**
   * What has no record, or a tombstone, counts if it runs. A tombstone that has not stood for its lease is newer than the
   * list: what that shows has been removed since. False: the census was begun in another life.
   */
  census(began: Life, running: readonly RunningContainer[]): boolean {
    const listed = new Set(running.map(({ id }) => id));
    const unrecorded = (id: SandboxId): boolean => {
      const entry = this.entry(id);
      return entry === null || (!('kind' in entry) && entry.state === 'gone');
    };
    const absent = (id: SandboxId): boolean => {
      const entry = this.entry(id);
      return entry === null || (!('kind' in entry) && isAbsent(entry, this.now()));
    };
    for (const { id, userId } of running) if (absent(id) && !this.counts(id)) this.#count(id, userId);
    for (const id of this.#counted.keys()) if (!listed.has(id) && unrecorded(id)) this.#count(id, undefined);
    if (this.life() !== began) return false;
    this.#countedIn = began;
    return true;
  }

  listen(listener: NewsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(news: News, userId: string | null): void {
    const user = userId === null ? null : userHash(userId);
    for (const listener of this.#listeners) listener(news, user);
  }

  /** Every entry, as it is stored. */
  entries(): ReadonlyMap<SandboxId, LeaseRecord | Unreadable> {
    return this.#entries;
  }

  /** All ids after this one, in their order. */
  idsAfter(after: SandboxId | null): readonly SandboxId[] {
    this.#sortedIds ??= [...this.#entries.keys()].sort();
    if (after === null) return this.#sortedIds;
    let low = 0;
    let high = this.#sortedIds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sortedIds[middle]! <= after) low = middle + 1;
      else high = middle;
    }
    return this.#sortedIds.slice(low);
  }

  #nextFence(known: readonly (Fence | undefined)[]): Fence {
    const micros = Math.floor((this.#offset + this.#clock.monotonic()) * 1000);
    return known.reduce<number>(
      (fence, other = 0 as Fence) => Math.max(fence, other + 1),
      Math.max(this.#lastFence + 1, micros),
    ) as Fence;
  }

  #store(id: SandboxId, entry: LeaseRecord | Unreadable): void {
    if (!this.#entries.has(id)) this.#sortedIds = null;
    this.#entries.set(id, entry);
  }

  /** `userId`: whose limit it counts against, null when that is not known; undefined: it counts no more. */
  #count(id: SandboxId, userId: string | null | undefined): void {
    const before = this.#counted.get(id);
    if (before === userId) return;
    if (typeof before === 'string') this.#add(before, -1);
    if (typeof userId === 'string') this.#add(userId, 1);
    if (userId !== undefined) this.#counted.set(id, userId);
    else if (this.#counted.delete(id)) this.tell('slot-freed', before ?? null);
  }

  #add(userId: string, change: 1 | -1): void {
    const count = (this.#perUser.get(userId) ?? 0) + change;
    if (count === 0) this.#perUser.delete(userId);
    else this.#perUser.set(userId, count);
  }

  /** Tombstones are written in the order in which they end, so the first that still stands ends the search. */
  #removeOldTombstones(): void {
    for (const [id, until] of this.#tombstones) {
      if (until > this.now()) return;
      this.remove(id);
    }
  }
}
