import type { Previous } from '../domain/errors.ts';
import { sandboxId } from '../domain/identity.ts';
import type { ContainerId, Fence, HoldId, Life, SandboxId } from '../domain/ids.ts';
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
  Snapshot,
  Spare,
  TakeReply,
  TakeRequest,
  Unheld,
} from './lease-store.ts';
import { MemoryHandle } from './memory-handle.ts';
import { identityMismatch } from './refusals.ts';
import { isUnreadable } from './snapshot.ts';
import { isMine, type Transition } from './transition.ts';
import * as acquiring from './transitions-acquire.ts';
import { limitReached } from './transitions-acquire.ts';
import * as holding from './transitions-holds.ts';
import * as owning from './transitions-owner.ts';
import * as removing from './transitions-removal.ts';
import { longestUnheld, unheldFrom } from './unheld.ts';

/** One owner's handle on a store that lives in this process. Each call is carried out before it returns. */
export class MemoryLeaseStore extends MemoryHandle implements LeaseStore {
  async take(request: TakeRequest): Promise<TakeReply> {
    const { id, identity } = request;
    this.database.settleLife();
    const { knowsWhatRuns } = this.database;
    const usage = { ...this.database.usage(identity.userId), counts: this.database.counts(id), knowsWhatRuns };
    const reply = sandboxId(identity) === id ? this.step(id, acquiring.take, { request, usage }) : 'mismatch';
    if (reply === 'mismatch') throw identityMismatch(id);
    return reply;
  }

  async activate(request: ActivateRequest) {
    return this.step(request.id, acquiring.activate, request);
  }

  async verify(id: SandboxId, container: ContainerId, url: string) {
    return this.step(id, acquiring.verify, { container, url });
  }

  async restart(id: SandboxId, container: ContainerId, why: Previous | null) {
    return this.step(id, acquiring.restart, { container, why });
  }

  async residue(id: SandboxId, fence: Fence, container: ContainerId) {
    return this.step(id, acquiring.residue, { fence, container });
  }

  async keepalive(id: SandboxId, hold: HoldId) {
    return this.step(id, holding.keepalive, { hold });
  }

  async release(id: SandboxId, hold: HoldId) {
    const reply = this.step(id, holding.release, { hold });
    if (reply !== 'not_found' && reply.state === 'ready' && reply.holds.size === 0) this.#tellUnheld(reply.userId);
    return reply;
  }

  async adopt(request: AdoptRequest) {
    return this.step(request.id, owning.adopt, request);
  }

  async claim(id: SandboxId, fence: Fence, condition: ClaimCondition) {
    return this.step(id, removing.claim, { fence, condition });
  }

  async condemnByIntent(id: SandboxId, container: ContainerId | null) {
    this.assertOpen();
    const entry = this.database.entry(id);
    if (isUnreadable(entry) && !entry.newer) this.database.remove(id);
    return this.step(id, removing.condemnByIntent, { container });
  }

  async confirm(request: ConfirmRequest) {
    return this.step(request.id, removing.confirm, request);
  }

  async drop(id: SandboxId, fence: Fence, previous: Previous | null) {
    return this.step(id, removing.drop, { fence, previous });
  }

  async end(id: SandboxId, container: ContainerId, why: Previous) {
    return this.step(id, removing.end, { container, why });
  }

  async renew(leases: readonly LeaseClaim[]): Promise<ReadonlyMap<SandboxId, RenewReply>> {
    this.assertOpen();
    this.database.settleLife();
    this.database.extendLife();
    const replies = new Map<SandboxId, RenewReply>();
    for (const lease of leases) {
      const { id } = lease;
      replies.set(id, this.isUnreadable(id) ? 'unreadable' : this.step(id, owning.renew, lease));
    }
    return replies;
  }

  async reassert(request: ReassertRequest) {
    return this.step(request.id, owning.reassert, request);
  }

  async handover(ids: readonly SandboxId[]): Promise<void> {
    this.assertOpen();
    for (const id of ids) if (!this.isUnreadable(id)) this.step(id, owning.handover, undefined);
  }

  async addSpare(spare: Spare): Promise<void> {
    this.assertOpen();
    this.database.spares.add(spare, this.database.now());
  }

  async claimSpare(id: SandboxId, fence: Fence, profile: string, spec: string) {
    const { spares } = this.database;
    const claimSpare: Transition<void, Spare | null | 'moved'> = (stored, at) => ({
      reply: isMine(stored, at, 'starting', fence) ? spares.claim(profile, spec, at.now) : 'moved',
    });
    const spare = this.step(id, claimSpare, undefined);
    if (spare !== null && spare !== 'moved') this.database.tell('spare-taken', null);
    return spare;
  }

  async retireSpare(container: ContainerId): Promise<boolean> {
    this.assertOpen();
    return this.database.spares.retire(container, this.database.now());
  }

  async pool() {
    this.assertOpen();
    return { spares: this.database.spares.waiting, sandboxes: this.database.usage('').fleet };
  }

  async tendSpares(): Promise<boolean> {
    this.assertOpen();
    const { spares, policy } = this.database;
    return spares.tend(this.owner, this.database.now(), policy.leaseMs);
  }

  async leaveSpares(): Promise<void> {
    this.assertOpen();
    this.database.spares.leave(this.owner);
  }

  async beginCensus(): Promise<Life> {
    this.assertOpen();
    this.database.settleLife();
    return this.database.life();
  }

  async census(began: Life, running: readonly RunningContainer[]) {
    this.assertOpen();
    return this.database.census(began, running) ? 'counted' : 'moved';
  }

  async unheld(userId: string | null, limit: number): Promise<Unheld> {
    this.assertOpen();
    const now = this.database.now();
    const found: Snapshot[] = [];
    let nextAt: number | null = null;
    for (const [id, entry] of this.database.entries()) {
      if (isUnreadable(entry) || entry.state !== 'ready') continue;
      if (userId !== null && entry.userId !== userId) continue;
      const from = unheldFrom(entry);
      if (from <= now) found.push(this.snapshot(id));
      else nextAt = Math.min(nextAt ?? from, from);
    }
    return { records: longestUnheld(found, limit), nextAt, now };
  }

  #tellUnheld(userId: string | null): void {
    const { fleet, user } = this.database.usage(userId ?? '');
    if (limitReached(this.database.policy, { fleet, user }) !== null) this.database.tell('unheld', userId);
  }
}
