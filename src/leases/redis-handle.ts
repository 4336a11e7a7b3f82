import type { Emit } from '../domain/events.ts';
import { asLife, type EngineMark, type OwnerId, type SandboxId } from '../domain/ids.ts';
import { MAX_HOLDS, PREVIOUS_KEPT_MS, RECORD_VERSION } from '../domain/sandbox.ts';
import type { HistoryStore } from './history-store.ts';
import type { LeasePolicy, NewsListener, Snapshot } from './lease-store.ts';
import { decodeValues } from './record-fields.ts';
import { RedisConnection } from './redis-connection.ts';
import { RedisHistory } from './redis-history.ts';
import { RedisKeys } from './redis-keys.ts';
import { RedisNews } from './redis-news.ts';
import type { RedisAddress } from './redis-options.ts';
import { digits, markOf, RedisReply, textOf } from './redis-replies.ts';
import type { ScriptName } from './redis-scripts.ts';
import { snapshotOf } from './snapshot.ts';

export interface RedisLeaseStoreOptions {
  readonly address: RedisAddress;
  readonly keyPrefix: string;
  readonly deployment: string;
  readonly owner: OwnerId;
  readonly policy: LeasePolicy;
  /** Told about a server that throws keys away when it is full; on each connection. */
  readonly emit?: Emit;
}

/** Most records that one script touches, so that none holds the server up. */
const BATCH = 200;

export function batches<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, n) => all.slice(n * BATCH, (n + 1) * BATCH));
}

/**
 * One owner's way to a store in Redis, and what it can read there. The connection is opened at once and in the
 * background; until it stands, calls are rejected.
 */
export abstract class RedisHandle {
  readonly owner: OwnerId;
  readonly seesPeers = true;
  readonly history: HistoryStore;
  protected readonly keys: RedisKeys;
  readonly #connection: RedisConnection;
  readonly #news: RedisNews;
  readonly #settings: readonly string[];
  readonly #holdTtlMs: number;

  constructor({ address, keyPrefix, deployment, owner, policy, emit }: RedisLeaseStoreOptions) {
    const { leaseMs, holdTtlMs } = policy;
    this.owner = owner;
    this.keys = new RedisKeys(keyPrefix, deployment);
    this.#holdTtlMs = holdTtlMs;
    this.#settings = [leaseMs, holdTtlMs, PREVIOUS_KEPT_MS, MAX_HOLDS, RECORD_VERSION].map(digits);
    this.#news = new RedisNews(address, this.keys.news);
    this.history = new RedisHistory((script, keys, args) => this.run(script, keys, args), this.keys);
    this.#connection = new RedisConnection(address, (evicts) => emit?.({ type: 'store-evicts', policy: evicts }));
  }

  listen(listener: NewsListener): () => void {
    return this.#news.listen(listener);
  }

  async read(id: SandboxId): Promise<Snapshot> {
    return (await this.#readBatch([id]))[0]!;
  }

  async readMany(ids: readonly SandboxId[]): Promise<readonly Snapshot[]> {
    return (await Promise.all(batches(ids).map((batch) => this.#readBatch(batch)))).flat();
  }

  async page(after: SandboxId | null, limit: number) {
    const items: Snapshot[] = [];
    let last = after;
    let asked: number;
    let got: number;
    do {
      asked = limit + 1 - items.length;
      const ids = (await this.run('page', [], [textOf(last), digits(asked)])) as SandboxId[];
      got = ids.length;
      last = ids.at(-1) ?? last;
      // The index may still name tombstones that have ended.
      items.push(...(await this.readMany(ids)).filter(({ kind }) => kind !== 'absent'));
    } while (got === asked && items.length <= limit);
    const shown = items.slice(0, limit);
    return { items: shown, next: items.length > limit ? (shown.at(-1)?.id ?? null) : null };
  }

  async settleEngine(mark: EngineMark): Promise<EngineMark> {
    return markOf(await this.run('settle-engine', [this.keys.engine], [mark]));
  }

  ping(): Promise<void> {
    return this.#connection.ping();
  }

  close(): Promise<void> {
    this.#news.close();
    return this.#connection.close();
  }

  /** Runs a script on one record. */
  protected async step(
    script: ScriptName,
    id: SandboxId,
    args: readonly string[],
    keys: readonly string[] = [],
  ): Promise<RedisReply> {
    return new RedisReply(id, await this.run(script, [this.keys.record(id), ...keys], [id, ...args]));
  }

  /** Runs a script, once. */
  protected run(script: ScriptName, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const all = [...this.keys.common, ...keys, this.keys.unheld];
    return this.#connection.run(script, all, this.owner, [...this.#settings, ...args]);
  }

  async #readBatch(ids: readonly SandboxId[]): Promise<readonly Snapshot[]> {
    const reply = (await this.run('read', this.recordKeys(ids), [])) as [string, string, ...(string[] | 0)[]];
    const [now, life, ...entries] = reply;
    const moment = { now: Number(now), life: asLife(life), holdTtlMs: this.#holdTtlMs };
    return ids.map((id, n) => {
      const values = entries[n] as string[] | 0;
      return snapshotOf(id, values === 0 ? null : decodeValues(id, values), moment);
    });
  }

  protected recordKeys(ids: readonly SandboxId[]): readonly string[] {
    return ids.map((id) => this.keys.record(id));
  }
}
