import type { Previous } from '../domain/errors.ts';
import { sandboxId } from '../domain/identity.ts';
import type { ContainerId, EngineMark, Fence, HoldId, OwnerId, SandboxId } from '../domain/ids.ts';
import { intoLife } from '../domain/sandbox.ts';
import type {
  ActivateRequest,
  AdoptRequest,
  ClaimCondition,
  ConfirmRequest,
  LeaseClaim,
  LeaseStore,
  ReassertRequest,
  RenewReply,
  Snapshot,
  Spare,
  TakeReply,
  TakeRequest,
} from './lease-store.ts';
import type { MemoryDatabase } from './memory-database.ts';
import { identityMismatch, storeClosed, unreadableError } from './refusals.ts';
import { isUnreadable, snapshotOf } from './snapshot.ts';
import { isMine, type Transition } from './transition.ts';
import * as acquiring from './transitions-acquire.ts';
import * as holding from './transitions-holds.ts';
import * as owning from './transitions-owner.ts';
import * as removing from './transitions-removal.ts';

export interface MemoryLeaseStoreOptions {
  readonly database: MemoryDatabase;
  readonly owner: OwnerId;
}

/** One owner's handle on a store that lives in this process. Each call is carried out before it returns. */
export class MemoryLeaseStore implements LeaseStore {
  readonly owner: OwnerId;
  readonly seesPeers = false;
  readonly #database: MemoryDatabase;
  #closed = false;

  constructor({ database, owner }: MemoryLeaseStoreOptions) {
    this.owner = owner;
    this.#database = database;
  }

  async take(request: TakeRequest): Promise<TakeReply> {
    const { id, identity } = request;
    const usage = this.#database.usage(identity.userId);
    const reply = sandboxId(identity) === id ? this.#step(id, acquiring.take, { request, usage }) : 'mismatch';
    if (reply === 'mismatch') throw identityMismatch(id);
    return reply;
  }

  async activate(request: ActivateRequest) {
    return this.#step(request.id, acquiring.activate, request);
  }

  async verify(id: SandboxId, container: ContainerId, url: string) {
    return this.#step(id, acquiring.verify, { container, url });
  }

  async restart(id: SandboxId, container: ContainerId, why: Previous | null) {
    return this.#step(id, acquiring.restart, { container, why });
  }

  async residue(id: SandboxId, fence: Fence, container: ContainerId) {
    return this.#step(id, acquiring.residue, { fence, container });
  }

  async keepalive(id: SandboxId, hold: HoldId) {
    return this.#step(id, holding.keepalive, { hold });
  }

  async release(id: SandboxId, hold: HoldId) {
    return this.#step(id, holding.release, { hold });
  }

  async adopt(request: AdoptRequest) {
    return this.#step(request.id, owning.adopt, request);
  }

  async claim(id: SandboxId, fence: Fence, condition: ClaimCondition) {
    return this.#step(id, removing.claim, { fence, condition });
  }

  async condemnByIntent(id: SandboxId, container: ContainerId | null) {
    this.#assertOpen();
    const entry = this.#database.entry(id);
    if (isUnreadable(entry) && !entry.newer) this.#database.remove(id);
    return this.#step(id, removing.condemnByIntent, { container });
  }

  async confirm(request: ConfirmRequest) {
    return this.#step(request.id, removing.confirm, request);
  }

  async drop(id: SandboxId, fence: Fence, previous: Previous | null) {
    return this.#step(id, removing.drop, { fence, previous });
  }

  async end(id: SandboxId, container: ContainerId, why: Previous) {
    return this.#step(id, removing.end, { container, why });
  }

  async renew(leases: readonly LeaseClaim[]): Promise<ReadonlyMap<SandboxId, RenewReply>> {
    this.#assertOpen();
    this.#database.settleLife();
    this.#database.extendLife();
    const replies = new Map<SandboxId, RenewReply>();
    for (const lease of leases) {
      const { id } = lease;
      replies.set(id, this.#isUnreadable(id) ? 'unreadable' : this.#step(id, owning.renew, lease));
    }
    return replies;
  }

  async reassert(request: ReassertRequest) {
    return this.#step(request.id, owning.reassert, request);
  }

  async handover(ids: readonly SandboxId[]): Promise<void> {
    this.#assertOpen();
    for (const id of ids) if (!this.#isUnreadable(id)) this.#step(id, owning.handover, undefined);
  }

  async addSpare(spare: Spare): Promise<void> {
    this.#assertOpen();
    this.#database.spares.add(spare, this.#database.now());
  }

  async claimSpare(id: SandboxId, fence: Fence, profile: string, spec: string) {
    const { spares } = this.#database;
    const claimSpare: Transition<void, Spare | null | 'moved'> = (stored, at) => {
      if (!isMine(stored, at, 'starting', fence)) return { reply: 'moved' };
      const reply = spares.claim(profile, spec, at.now);
      return reply === null ? { reply } : { reply, record: { ...stored, container: reply.container } };
    };
    return this.#step(id, claimSpare, undefined);
  }

  async retireSpare(container: ContainerId): Promise<boolean> {
    this.#assertOpen();
    return this.#database.spares.retire(container, this.#database.now());
  }

  async pool() {
    this.#assertOpen();
    return { spares: this.#database.spares.waiting, sandboxes: this.#database.usage('').fleet };
  }

  async tendSpares(): Promise<boolean> {
    this.#assertOpen();
    const { spares, policy } = this.#database;
    return spares.tend(this.owner, this.#database.now(), policy.leaseMs);
  }

  async leaveSpares(): Promise<void> {
    this.#assertOpen();
    this.#database.spares.leave(this.owner);
  }

  async read(id: SandboxId): Promise<Snapshot> {
    this.#assertOpen();
    return this.#snapshot(id);
  }

  async readMany(ids: readonly SandboxId[]): Promise<readonly Snapshot[]> {
    this.#assertOpen();
    return ids.map((id) => this.#snapshot(id));
  }

  async page(after: SandboxId | null, limit: number) {
    this.#assertOpen();
    const items: Snapshot[] = [];
    for (const id of this.#database.idsAfter(after)) {
      const snapshot = this.#snapshot(id);
      if (snapshot.kind === 'absent') continue;
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? null };
      items.push(snapshot);
    }
    return { items, next: null };
  }

  async settleEngine(mark: EngineMark): Promise<EngineMark> {
    this.#assertOpen();
    this.#database.engine ??= mark;
    return this.#database.engine;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #step<Args, Reply>(id: SandboxId, transition: Transition<Args, Reply>, args: Args): Reply {
    this.#assertOpen();
    const at = this.#database.moment(id, this.owner);
    const entry = this.#database.entry(id);
    if (isUnreadable(entry)) throw unreadableError(id, entry);
    const stored = entry === null ? null : intoLife(entry, at.life, at.now, at.policy.holdTtlMs);
    const { record = stored, reply } = transition(stored, at, args);
    if (record !== null && record !== entry) this.#database.put(record);
    return reply;
  }

  #snapshot(id: SandboxId): Snapshot {
    const database = this.#database;
    const { holdTtlMs } = database.policy;
    return snapshotOf(id, database.entry(id), { now: database.now(), life: database.life(), holdTtlMs });
  }

  #isUnreadable(id: SandboxId): boolean {
    return isUnreadable(this.#database.entry(id));
  }

  #assertOpen(): void {
    if (this.#closed) throw storeClosed();
  }
}
