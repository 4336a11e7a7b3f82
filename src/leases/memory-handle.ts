import type { EngineMark, OwnerId, SandboxId } from '../domain/ids.ts';
import { intoLife } from '../domain/sandbox.ts';
import type { HistoryStore } from './history-store.ts';
import type { NewsListener, Snapshot } from './lease-store.ts';
import type { MemoryDatabase } from './memory-database.ts';
import { storeClosed, unreadableError } from './refusals.ts';
import { isUnreadable, snapshotOf } from './snapshot.ts';
import type { Transition } from './transition.ts';

export interface MemoryLeaseStoreOptions {
  readonly database: MemoryDatabase;
  readonly owner: OwnerId;
}

/** One owner's way to a store that lives in this process, and what it can read there. */
export abstract class MemoryHandle {
  readonly owner: OwnerId;
  readonly seesPeers = false;
  readonly history: HistoryStore;
  protected readonly database: MemoryDatabase;
  #closed = false;

  constructor({ database, owner }: MemoryLeaseStoreOptions) {
    this.owner = owner;
    this.history = database.history;
    this.database = database;
  }

  listen(listener: NewsListener): () => void {
    return this.database.listen(listener);
  }

  async read(id: SandboxId): Promise<Snapshot> {
    this.assertOpen();
    return this.snapshot(id);
  }

  async readMany(ids: readonly SandboxId[]): Promise<readonly Snapshot[]> {
    this.assertOpen();
    return ids.map((id) => this.snapshot(id));
  }

  async page(after: SandboxId | null, limit: number) {
    this.assertOpen();
    const items: Snapshot[] = [];
    for (const id of this.database.idsAfter(after)) {
      const snapshot = this.snapshot(id);
      if (snapshot.kind === 'absent') continue;
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? null };
      items.push(snapshot);
    }
    return { items, next: null };
  }

  async settleEngine(mark: EngineMark): Promise<EngineMark> {
    this.assertOpen();
    this.database.engine ??= mark;
    return this.database.engine;
  }

  async ping(): Promise<void> {
    this.assertOpen();
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  /** One step on one record. */
  protected step<Args, Reply>(id: SandboxId, transition: Transition<Args, Reply>, args: Args): Reply {
    this.assertOpen();
    const at = this.database.moment(id, this.owner);
    const entry = this.database.entry(id);
    if (isUnreadable(entry)) throw unreadableError(id, entry);
    const stored = entry === null ? null : intoLife(entry, at.life, at.now, at.policy.holdTtlMs);
    const { record = stored, reply } = transition(stored, at, args);
    if (record !== null && record !== entry) this.database.put(record);
    return reply;
  }

  protected snapshot(id: SandboxId): Snapshot {
    const database = this.database;
    const { holdTtlMs } = database.policy;
    return snapshotOf(id, database.entry(id), { now: database.now(), life: database.life(), holdTtlMs });
  }

  protected isUnreadable(id: SandboxId): boolean {
    return isUnreadable(this.database.entry(id));
  }

  protected assertOpen(): void {
    if (this.#closed) throw storeClosed();
  }
}
