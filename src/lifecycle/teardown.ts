import { messageOf } from '../domain/errors.ts';
import type { Emit, RemovalReason } from '../domain/events.ts';
import type { ContainerId, Life, SandboxId } from '../domain/ids.ts';
import { spareId } from '../domain/names.ts';
import type { Clock } from '../domain/timing.ts';
import type { Claim, ConfirmReply, ConfirmRequest, LeaseStore, StartReply } from '../leases/lease-store.ts';
import type { ContainerRuntime, RemoveHow, SpareContainer } from '../runtime/container-runtime.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Engine } from './engine.ts';
import type { RemovalBackoff } from './removal-backoff.ts';
import type { TrackedLeases } from './tracked.ts';

export interface TeardownOptions {
  readonly store: Pick<LeaseStore, 'confirm' | 'drop' | 'retireSpare'>;
  readonly runtime: Pick<ContainerRuntime, 'condemn' | 'condemnSpare' | 'giveBack' | 'remove'>;
  readonly engine: Pick<Engine, 'mark'>;
  readonly tracked: TrackedLeases;
  readonly tasks: BackgroundTasks;
  readonly backoff: RemovalBackoff;
  readonly clock: Clock;
  readonly emit: Emit;
  /** How long an unfinished start may keep a teardown waiting. */
  readonly leaseMs: number;
}

/**
 * `removed`: the container is gone. `kept`: somebody has it, or finishes it. `failed`: reported, and left for whoever
 * finds it; its record expires and its name stays condemned.
 */
export type RemovalOutcome = 'removed' | 'kept' | 'failed';

const ASK_AGAIN_MS = 100;

/**
 * The one way to remove a container: claim, condemn, confirm, remove.
 *
 * The claim was made by the caller: it announced the intent in the store. Condemning renames the container, so that
 * from here on nobody new can find it. Only then the store is asked whether somebody found it earlier. If not, nobody
 * can ever come to hold it, and it is stopped and removed by the condemned name.
 */
export class Teardown {
  readonly #options: TeardownOptions;
  /** Since when each container has been on its way out here. One whose removal failed stays, until it is gone. */
  readonly #open = new Map<ContainerId, number>();

  constructor(options: TeardownOptions) {
    this.#options = options;
  }

  /** How many containers are on their way out, and for how long the first of them. */
  open(): { readonly count: number; readonly oldestMs: number } {
    const since = Math.min(...this.#open.values());
    return { count: this.#open.size, oldestMs: this.#open.size === 0 ? 0 : this.#options.clock.monotonic() - since };
  }

  /** Forgets containers that are not there any more: a peer has finished their removal. */
  keepOnly(present: Pick<ReadonlySet<ContainerId>, 'has'>): void {
    for (const container of this.#open.keys()) if (!present.has(container)) this.#open.delete(container);
  }

  /** Carries out a claim. Never rejects. */
  async run(claim: Claim, reason: RemovalReason, how: RemoveHow = 'stop'): Promise<RemovalOutcome> {
    const { store, tracked, emit } = this.#options;
    const { id, fence, container } = claim;
    tracked.forget(id, fence);
    emit({ type: 'claimed', reason, sandbox: id, fence, container });
    return this.#reported(id, container, reason, async () => {
      if (container !== null) {
        const { engine, life } = claim;
        const ours = await this.#condemnAndConfirm({ kind: 'teardown', id, fence, container, engine }, life, reason);
        if (!ours) return 'kept';
        await this.#remove(id, container, reason, how);
      }
      // Of a sandbox that had become ready, `previous` is of an earlier container: it is not why this one ended.
      const stillTold = reason === 'failed-start' || reason === 'expired';
      await store.drop(id, fence, stillTold ? claim.previous : null);
      return 'removed';
    });
  }

  /** Carries out a claim that no caller waits for; shutdown does. Never rejects. */
  begin(claim: Claim, reason: RemovalReason, how: RemoveHow = 'stop'): Promise<RemovalOutcome> {
    return this.#options.tasks.add(this.run(claim, reason, how));
  }

  /**
   * Clears the way for a start: its residue is condemned and confirmed, and removed in the background. False: the
   * start is not this replica's any more. Rejects when engine or store does not answer.
   */
  async clearResidue(start: StartReply, container: ContainerId, how: RemoveHow): Promise<boolean> {
    const { tasks } = this.#options;
    const { id } = start.record;
    const question: ConfirmRequest = { kind: 'residue', id, fence: start.fence, container };
    if (!(await this.#condemnAndConfirm(question, start.life, 'residue'))) return false;
    const removal = async (): Promise<RemovalOutcome> => {
      await this.#remove(id, container, 'residue', how);
      return 'removed';
    };
    tasks.add(this.#reported(id, container, 'residue', removal));
    return true;
  }

  /** Removes a container that no acquire will hand out any more, if the store agrees. Never rejects. */
  async removeStray(id: SandboxId, container: ContainerId): Promise<RemovalOutcome> {
    const question: ConfirmRequest = { kind: 'stray', id, container };
    return this.#reported(id, container, 'stray', async () => {
      const before = await this.#options.store.confirm(question);
      if (before.answer !== 'mine') return 'kept';
      if (!(await this.#condemnAndConfirm(question, before.life, 'stray'))) return 'kept';
      await this.#remove(id, container, 'stray', 'stop');
      return 'removed';
    });
  }

  /**
   * Removes a spare, if no start has claimed it, or if it is `forgotten`: whoever claimed it is late. It is condemned by
   * the name that only a spare has: one that was dedicated meanwhile, whatever the store remembers of it, is not found
   * by it. Never rejects.
   */
  async removeSpare(spare: SpareContainer, forgotten = false): Promise<RemovalOutcome> {
    const { store, runtime } = this.#options;
    const { container } = spare;
    const id = spareId(container);
    return this.#reported(id, container, 'spare', async () => {
      const retired = await store.retireSpare(container);
      if (!retired && !forgotten) return 'kept';
      if (!(await runtime.condemnSpare(spare))) return 'kept';
      await this.#remove(id, container, 'spare', 'kill');
      return 'removed';
    });
  }

  /** As `removeStray`, for nobody who waits. */
  beginStray(id: SandboxId, container: ContainerId): void {
    this.#options.tasks.add(this.removeStray(id, container));
  }

  /** True if the container is out of everybody's reach. Otherwise the name went back, if it is this call's to give. */
  async #condemnAndConfirm(question: ConfirmRequest, claimedIn: Life, reason: RemovalReason): Promise<boolean> {
    const { runtime, engine, emit } = this.#options;
    const { id, container } = question;
    // Beside another engine the container would seem to be gone, and its record would be dropped.
    await engine.mark();
    const tookTheName = await runtime.condemn(id, container);
    const { answer, life } = await this.#ask(question);
    if (answer === 'mine') return true;
    if (answer === 'named' && tookTheName && life === claimedIn) await runtime.giveBack(id, container);
    emit({ type: 'removal-stopped', reason, because: answer, sandbox: id, container });
    return false;
  }

  /** Asks until no unfinished start keeps the answer open, for a lease at most. */
  async #ask(question: ConfirmRequest): Promise<ConfirmReply> {
    const { store, clock, leaseMs } = this.#options;
    const until = clock.monotonic() + leaseMs;
    for (;;) {
      const reply = await store.confirm(question);
      if (reply.answer !== 'starting' || question.kind === 'residue' || clock.monotonic() >= until) return reply;
      await clock.pause(ASK_AGAIN_MS);
    }
  }

  async #remove(id: SandboxId, container: ContainerId, reason: RemovalReason, how: RemoveHow): Promise<void> {
    const { runtime, clock, emit } = this.#options;
    const began = clock.monotonic();
    const outcome = await runtime.remove(id, container, how);
    const durationMs = clock.monotonic() - began;
    if (outcome === 'removed') emit({ type: 'removed', reason, durationMs, sandbox: id, container });
    else emit({ type: 'removal-stopped', reason, because: 'it runs again', sandbox: id, container });
  }

  async #reported(
    id: SandboxId,
    container: ContainerId | null,
    reason: RemovalReason,
    steps: () => Promise<RemovalOutcome>,
  ): Promise<RemovalOutcome> {
    const { backoff, clock, emit } = this.#options;
    if (container !== null) this.#open.set(container, this.#open.get(container) ?? clock.monotonic());
    try {
      const outcome = await steps();
      if (container !== null) backoff.succeeded(container);
      if (container !== null) this.#open.delete(container);
      return outcome;
    } catch (error) {
      if (container !== null) backoff.failed(container, clock.monotonic());
      emit({ type: 'removal-failed', reason, message: messageOf(error), sandbox: id, container });
      return 'failed';
    }
  }
}
