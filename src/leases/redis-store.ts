import type { Previous } from '../domain/errors.ts';
import { sandboxId, userHash } from '../domain/identity.ts';
import {
  asLife,
  type ContainerId,
  type Fence,
  formatFence,
  type HoldId,
  type Life,
  NO_FENCE,
  type SandboxId,
} from '../domain/ids.ts';
import type {
  ActivateRequest,
  AdoptRequest,
  ClaimCondition,
  ConfirmRequest,
  LeaseClaim,
  LeaseStore,
  ReassertRequest,
  RenewReply,
  RunningContainer,
  Spare,
  SparePool,
  TakeReply,
  TakeRequest,
  Unheld,
} from './lease-store.ts';
import { encodePrevious } from './record-fields.ts';
import { batches, RedisHandle, type RedisLeaseStoreOptions } from './redis-handle.ts';
import { poolHash } from './redis-keys.ts';
import { digits, fenceArg, foundArgs, poolOf, textOf, timeOf, wordOf } from './redis-replies.ts';
import { identityMismatch } from './refusals.ts';
import { longestUnheld } from './unheld.ts';

/** One owner's handle on a store in Redis. Each operation is one script. */
export class RedisLeaseStore extends RedisHandle implements LeaseStore {
  readonly #limits: readonly string[];

  constructor(options: RedisLeaseStoreOptions) {
    super(options);
    const { maxSandboxes, maxPerUser } = options.policy;
    this.#limits = [maxSandboxes, maxPerUser].map(digits);
  }

  async take({ id, identity, spec, known, behind }: TakeRequest): Promise<TakeReply> {
    if (sandboxId(identity) !== id) throw identityMismatch(id);
    const { profile, userId, threadId } = identity;
    const args = [profile, userId, threadId, spec, fenceArg(known), ...this.#limits, behind ?? ''];
    return (await this.step('take', id, args, [this.keys.census])).taken();
  }

  async activate({ id, fence, container, engine, url, found, since, spec, createdAt, holdMs }: ActivateRequest) {
    const about = [container, engine, url, found ? '1' : '0', formatFence(since), textOf(spec), timeOf(createdAt)];
    const reply = await this.step('activate', id, [formatFence(fence), ...about, digits(holdMs)]);
    return reply.recordOr<'moved'>();
  }

  async verify(id: SandboxId, container: ContainerId, url: string) {
    return (await this.step('verify', id, [container, url])).recordOr<'moved'>();
  }

  async restart(id: SandboxId, container: ContainerId, why: Previous | null) {
    return (await this.step('restart', id, [container, encodePrevious(why)])).startOr<'moved'>();
  }

  async residue(id: SandboxId, fence: Fence, container: ContainerId) {
    return (await this.step('residue', id, [formatFence(fence), container])).startOr<'moved'>();
  }

  async keepalive(id: SandboxId, hold: HoldId) {
    return (await this.step('keepalive', id, [formatFence(hold)])).recordOr<'hold_lost' | 'not_found'>();
  }

  async release(id: SandboxId, hold: HoldId) {
    return (await this.step('release', id, [formatFence(hold), ...this.#limits])).recordOr<'not_found'>();
  }

  async adopt({ id, container }: AdoptRequest) {
    const found = container === null ? ['0'] : ['1', ...foundArgs(container)];
    return (await this.step('adopt', id, found)).recordOr<'refused'>();
  }

  async claim(id: SandboxId, fence: Fence, condition: ClaimCondition) {
    const container = 'container' in condition ? textOf(condition.container) : '';
    const unheldMs = condition.kind === 'idle' ? condition.unheldMs : 0;
    const args = [formatFence(fence), condition.kind, container, digits(unheldMs)];
    return (await this.step('claim', id, args)).claimOr<'refused'>();
  }

  async condemnByIntent(id: SandboxId, container: ContainerId | null) {
    const reply = await this.step('condemn-by-intent', id, [textOf(container)]);
    return reply.claimOr<'wait' | 'underway' | 'nothing'>();
  }

  async confirm(request: ConfirmRequest) {
    const { kind, id, container } = request;
    const fence = kind === 'stray' ? NO_FENCE : request.fence;
    const engine = kind === 'teardown' ? request.engine : null;
    return (await this.step('confirm', id, [kind, formatFence(fence), container, textOf(engine)])).confirmed();
  }

  async drop(id: SandboxId, fence: Fence, previous: Previous | null) {
    const reply = await this.step('drop', id, [formatFence(fence), encodePrevious(previous)]);
    return reply.word as 'dropped' | 'nothing';
  }

  async end(id: SandboxId, container: ContainerId, why: Previous) {
    const reply = await this.step('end', id, [container, encodePrevious(why)]);
    return reply.word as 'ended' | 'nothing';
  }

  async renew(leases: readonly LeaseClaim[]): Promise<ReadonlyMap<SandboxId, RenewReply>> {
    const replies = new Map<SandboxId, RenewReply>();
    for (const batch of leases.length === 0 ? [[]] : batches(leases)) {
      const args = batch.flatMap(({ id, fence, ready }) => [id, formatFence(fence), ready === true ? '1' : '0']);
      const words = (await this.run('renew', this.recordKeys(batch.map(({ id }) => id)), args)) as RenewReply[];
      for (const [n, { id }] of batch.entries()) replies.set(id, words[n]!);
    }
    return replies;
  }

  async reassert(request: ReassertRequest) {
    const args = [formatFence(request.fence), ...foundArgs(request)];
    return (await this.step('reassert', request.id, args)).recordOr<'refused'>();
  }

  async handover(ids: readonly SandboxId[]): Promise<void> {
    for (const batch of batches(ids)) await this.run('handover', this.recordKeys(batch), batch);
  }

  async addSpare(spare: Spare): Promise<void> {
    const { container, name, engine, url, profile, spec, createdAt } = spare;
    const text = JSON.stringify({ container, name, engine, url, profile, spec, createdAt });
    const place = `${poolHash(profile, spec)}:${digits(createdAt).padStart(16, '0')}:${container}`;
    await this.run('add-spare', this.keys.spares, [container, place, text]);
  }

  async claimSpare(id: SandboxId, fence: Fence, profile: string, spec: string) {
    const args = [formatFence(fence), poolHash(profile, spec)];
    return (await this.step('claim-spare', id, args, this.keys.spares)).spare();
  }

  async retireSpare(container: ContainerId): Promise<boolean> {
    return wordOf(await this.run('retire-spare', this.keys.spares, [container])) === 'retired';
  }

  async pool(): Promise<SparePool> {
    return poolOf(await this.run('pool', this.keys.spares, []));
  }

  async tendSpares(): Promise<boolean> {
    return wordOf(await this.run('tend-spares', [this.keys.spareTender], ['1'])) === 'mine';
  }

  async leaveSpares(): Promise<void> {
    await this.run('tend-spares', [this.keys.spareTender], ['0']);
  }

  async beginCensus(): Promise<Life> {
    return asLife(wordOf(await this.run('begin-census', [], [])));
  }

  async census(began: Life, running: readonly RunningContainer[]) {
    const listed = new Set(running.map(({ id }) => id));
    for (const batch of batches(running)) {
      const args = batch.flatMap(({ id, userId }) => [id, userId === null ? '' : userHash(userId)]);
      await this.run('census', this.recordKeys(batch.map(({ id }) => id)), args);
    }
    let place = '0';
    do {
      const [next, ...counted] = (await this.run('counted', [], [place])) as [string, ...SandboxId[]];
      for (const batch of batches(counted.filter((id) => !listed.has(id)))) {
        const args = batch.flatMap((id) => [id, '-']);
        await this.run('census', this.recordKeys(batch), args);
      }
      place = next;
    } while (place !== '0');
    return wordOf(await this.run('end-census', [this.keys.census], [began])) as 'counted' | 'moved';
  }

  async unheld(userId: string | null, limit: number): Promise<Unheld> {
    const args = [userId === null ? '' : userHash(userId), digits(limit)];
    const [now, next, ...ids] = (await this.run('unheld', [], args)) as [string, string, ...SandboxId[]];
    const records = longestUnheld(await this.readMany(ids), limit);
    return { records, nextAt: next === '' ? null : Number(next), now: Number(now) };
  }
}
