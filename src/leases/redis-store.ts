import type { Previous } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { sandboxId } from '../domain/identity.ts';
import {
  asLife,
  type ContainerId,
  type EngineMark,
  type Fence,
  formatFence,
  type HoldId,
  NO_FENCE,
  type OwnerId,
  type SandboxId,
} from '../domain/ids.ts';
import { MAX_HOLDS, PREVIOUS_KEPT_MS, RECORD_VERSION } from '../domain/sandbox.ts';
import type {
  ActivateRequest,
  AdoptRequest,
  ClaimCondition,
  ConfirmRequest,
  LeaseClaim,
  LeasePolicy,
  LeaseStore,
  ReassertRequest,
  RenewReply,
  Snapshot,
  Spare,
  SparePool,
  TakeReply,
  TakeRequest,
} from './lease-store.ts';
import { decodeValues, encodePrevious } from './record-fields.ts';
import { RedisConnection } from './redis-connection.ts';
import { poolHash, RedisKeys } from './redis-keys.ts';
import type { RedisAddress } from './redis-options.ts';
import { digits, fenceArg, foundArgs, markOf, poolOf, RedisReply, textOf, timeOf, wordOf } from './redis-replies.ts';
import type { ScriptName } from './redis-scripts.ts';
import { identityMismatch } from './refusals.ts';
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

/**
 * One owner's handle on a store in Redis. Each operation is one script. The connection is opened at once and in the
 * background; until it stands, calls are rejected.
 */
export class RedisLeaseStore implements LeaseStore {
  readonly owner: OwnerId;
  readonly seesPeers = true;
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #policy: LeasePolicy;
  readonly #settings: readonly string[];

  constructor({ address, keyPrefix, deployment, owner, policy, emit }: RedisLeaseStoreOptions) {
    this.owner = owner;
    this.#policy = policy;
    this.#keys = new RedisKeys(keyPrefix, deployment);
    const { leaseMs, holdTtlMs } = policy;
    this.#settings = [leaseMs, holdTtlMs, PREVIOUS_KEPT_MS, MAX_HOLDS, RECORD_VERSION].map(digits);
    this.#connection = new RedisConnection(address, (evicts) => emit?.({ type: 'store-evicts', policy: evicts }));
  }

  async take({ id, identity, spec, known }: TakeRequest): Promise<TakeReply> {
    if (sandboxId(identity) !== id) throw identityMismatch(id);
    const { profile, userId, threadId } = identity;
    const limits = [this.#policy.maxSandboxes, this.#policy.maxPerUser].map(digits);
    const reply = await this.#step('take', id, [profile, userId, threadId, spec, fenceArg(known), ...limits]);
    return reply.taken();
  }

  async activate({ id, fence, container, engine, url, found, since, spec, createdAt, holdMs }: ActivateRequest) {
    const about = [container, engine, url, found ? '1' : '0', formatFence(since), textOf(spec), timeOf(createdAt)];
    const reply = await this.#step('activate', id, [formatFence(fence), ...about, digits(holdMs)]);
    return reply.recordOr<'moved'>();
  }

  async verify(id: SandboxId, container: ContainerId, url: string) {
    return (await this.#step('verify', id, [container, url])).recordOr<'moved'>();
  }

  async restart(id: SandboxId, container: ContainerId, why: Previous | null) {
    return (await this.#step('restart', id, [container, encodePrevious(why)])).startOr<'moved'>();
  }

  async residue(id: SandboxId, fence: Fence, container: ContainerId) {
    return (await this.#step('residue', id, [formatFence(fence), container])).startOr<'moved'>();
  }

  async keepalive(id: SandboxId, hold: HoldId) {
    return (await this.#step('keepalive', id, [formatFence(hold)])).recordOr<'hold_lost' | 'not_found'>();
  }

  async release(id: SandboxId, hold: HoldId) {
    return (await this.#step('release', id, [formatFence(hold)])).recordOr<'not_found'>();
  }

  async adopt({ id, container }: AdoptRequest) {
    const found = container === null ? ['0'] : ['1', ...foundArgs(container)];
    return (await this.#step('adopt', id, found)).recordOr<'refused'>();
  }

  async claim(id: SandboxId, fence: Fence, condition: ClaimCondition) {
    const container = 'container' in condition ? textOf(condition.container) : '';
    const unheldMs = condition.kind === 'idle' ? condition.unheldMs : 0;
    const args = [formatFence(fence), condition.kind, container, digits(unheldMs)];
    return (await this.#step('claim', id, args)).claimOr<'refused'>();
  }

  async condemnByIntent(id: SandboxId, container: ContainerId | null) {
    const reply = await this.#step('condemn-by-intent', id, [textOf(container)]);
    return reply.claimOr<'wait' | 'underway' | 'nothing'>();
  }

  async confirm(request: ConfirmRequest) {
    const { kind, id, container } = request;
    const fence = kind === 'stray' ? NO_FENCE : request.fence;
    const engine = kind === 'teardown' ? request.engine : null;
    return (await this.#step('confirm', id, [kind, formatFence(fence), container, textOf(engine)])).confirmed();
  }

  async drop(id: SandboxId, fence: Fence, previous: Previous | null) {
    const reply = await this.#step('drop', id, [formatFence(fence), encodePrevious(previous)]);
    return reply.word as 'dropped' | 'nothing';
  }

  async end(id: SandboxId, container: ContainerId, why: Previous) {
    const reply = await this.#step('end', id, [container, encodePrevious(why)]);
    return reply.word as 'ended' | 'nothing';
  }

  async renew(leases: readonly LeaseClaim[]): Promise<ReadonlyMap<SandboxId, RenewReply>> {
    const replies = new Map<SandboxId, RenewReply>();
    for (const batch of leases.length === 0 ? [[]] : batches(leases)) {
      const args = batch.flatMap(({ id, fence, ready }) => [id, formatFence(fence), ready === true ? '1' : '0']);
      const words = (await this.#run('renew', this.#recordKeys(batch.map(({ id }) => id)), args)) as RenewReply[];
      for (const [n, { id }] of batch.entries()) replies.set(id, words[n]!);
    }
    return replies;
  }

  async reassert(request: ReassertRequest) {
    const args = [formatFence(request.fence), ...foundArgs(request)];
    return (await this.#step('reassert', request.id, args)).recordOr<'refused'>();
  }

  async handover(ids: readonly SandboxId[]): Promise<void> {
    for (const batch of batches(ids)) await this.#run('handover', this.#recordKeys(batch), batch);
  }

  async addSpare(spare: Spare): Promise<void> {
    const { container, name, engine, url, profile, spec, createdAt } = spare;
    const text = JSON.stringify({ container, name, engine, url, profile, spec, createdAt });
    const place = `${poolHash(profile, spec)}:${digits(createdAt).padStart(16, '0')}:${container}`;
    await this.#run('add-spare', this.#keys.spares, [container, place, text]);
  }

  async claimSpare(id: SandboxId, fence: Fence, profile: string, spec: string) {
    const args = [formatFence(fence), poolHash(profile, spec)];
    return (await this.#step('claim-spare', id, args, this.#keys.spares)).spare();
  }

  async retireSpare(container: ContainerId): Promise<boolean> {
    return wordOf(await this.#run('retire-spare', this.#keys.spares, [container])) === 'retired';
  }

  async pool(): Promise<SparePool> {
    return poolOf(await this.#run('pool', this.#keys.spares, []));
  }

  async tendSpares(): Promise<boolean> {
    return wordOf(await this.#run('tend-spares', [this.#keys.spareTender], ['1'])) === 'mine';
  }

  async leaveSpares(): Promise<void> {
    await this.#run('tend-spares', [this.#keys.spareTender], ['0']);
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
      const ids = (await this.#run('page', [], [textOf(last), digits(asked)])) as SandboxId[];
      got = ids.length;
      last = ids.at(-1) ?? last;
      // The index may still name tombstones that have ended.
      items.push(...(await this.readMany(ids)).filter(({ kind }) => kind !== 'absent'));
    } while (got === asked && items.length <= limit);
    const shown = items.slice(0, limit);
    return { items: shown, next: items.length > limit ? (shown.at(-1)?.id ?? null) : null };
  }

  async settleEngine(mark: EngineMark): Promise<EngineMark> {
    return markOf(await this.#run('settle-engine', [this.#keys.engine], [mark]));
  }

  ping(): Promise<void> {
    return this.#connection.ping();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #step(
    script: ScriptName,
    id: SandboxId,
    args: readonly string[],
    keys: readonly string[] = [],
  ): Promise<RedisReply> {
    return new RedisReply(id, await this.#run(script, [this.#keys.record(id), ...keys], [id, ...args]));
  }

  #run(script: ScriptName, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#connection.run(script, [...this.#keys.common, ...keys], this.owner, [...this.#settings, ...args]);
  }

  async #readBatch(ids: readonly SandboxId[]): Promise<readonly Snapshot[]> {
    const reply = (await this.#run('read', this.#recordKeys(ids), [])) as [string, string, ...(string[] | 0)[]];
    const [now, life, ...entries] = reply;
    const moment = { now: Number(now), life: asLife(life), holdTtlMs: this.#policy.holdTtlMs };
    return ids.map((id, n) => {
      const values = entries[n] as string[] | 0;
      return snapshotOf(id, values === 0 ? null : decodeValues(id, values), moment);
    });
  }

  #recordKeys(ids: readonly SandboxId[]): readonly string[] {
    return ids.map((id) => this.#keys.record(id));
  }
}

function batches<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, n) => all.slice(n * BATCH, (n + 1) * BATCH));
}
