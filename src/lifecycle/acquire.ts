import type { Container, Sighting } from '../domain/container.ts';
import { BrokerError, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit, Origin } from '../domain/events.ts';
import type { Identity } from '../domain/identity.ts';
import { type ContainerId, type HoldId, NO_FENCE, type SandboxId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore, StartReply } from '../leases/lease-store.ts';
import type { ContainerRuntime, RemoveHow } from '../runtime/container-runtime.ts';
import type { Admission } from './admission.ts';
import type { Engine } from './engine.ts';
import type { FailedStarts } from './failed-starts.ts';
import { type Handout, unsettled, type Waiting } from './handout.ts';
import type { Liveness } from './liveness.ts';
import type { Starter } from './starter.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface AcquireOptions {
  readonly store: LeaseStore;
  readonly runtime: Pick<ContainerRuntime, 'look' | 'postMortem'>;
  readonly admission: Admission;
  readonly engine: Engine;
  readonly liveness: Liveness;
  readonly starter: Starter;
  readonly teardown: Teardown;
  readonly failedStarts: FailedStarts;
  readonly tracked: TrackedLeases;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly holdTtlMs: number;
  /** Wall clock at this replica's start. */
  readonly startedAt: number;
}

export interface Wanted {
  readonly id: SandboxId;
  readonly identity: Identity;
  readonly profile: Profile;
  readonly spec: string;
}

/** A start that is this replica's: what the store said, and how its residue is to be removed. */
interface Start {
  readonly reply: StartReply;
  readonly residueHow: RemoveHow;
}

/** What one look or one start came to. `moved`: somebody else changed the sandbox meanwhile; begin again. */
type Step = Handout | Start | 'moved';

/** How long the hold of a start lasts that nobody waited for. */
const BRIEF_HOLD_MS = 60_000;
const LOOK_AGAIN_MS = 50;

/** The same start, once more from the look under the name. */
const lookAgain = (reply: StartReply): Start => ({ reply: { ...reply, residue: null }, residueHow: 'onlyIfStopped' });
const isStart = (step: Step): step is Start => typeof step === 'object' && 'reply' in step;

/**
 * Hands out the sandbox of an identity. Acquires of one id run one after the other in a replica (see Turns); against
 * other replicas nothing but the store's atomic steps protects, and nothing else is needed.
 *
 * 1. Take the lease: no container is touched before.
 * 2. `ready`: answer, once the container is known to be fit; start anew if it is dead.
 * 3. `starting`: clear the residue, use what is found under the name, else make a container; activate.
 * 4. Refused anywhere: the world moved. Back to 1.
 */
export class Acquire {
  readonly #options: AcquireOptions;

  constructor(options: AcquireOptions) {
    this.#options = options;
  }

  /**
   * Resolves with a sandbox that was fit when it was looked at. Rejects with a `BrokerError`, leaving no hold of its
   * own behind; `sandbox_unsettled` also when nobody waits any more and there is nothing of this replica's to go on
   * with.
   */
  async run(wanted: Wanted, caller: Waiting): Promise<Handout> {
    for (let round = 1; ; round += 1) {
      if (round > 1 && caller.gaveUp.aborted) throw unsettled(wanted.id, 'another replica is changing it');
      const step = await this.#takeAndUse(wanted, caller);
      if (step !== 'moved') return step;
    }
  }

  async #takeAndUse(wanted: Wanted, caller: Waiting): Promise<Handout | 'moved'> {
    const { admission, tracked, clock, emit } = this.#options;
    const { id, identity, spec } = wanted;
    const { reply: taken, sentAt } = await admission.take({ id, identity, spec }, caller.gaveUp);
    switch (taken.kind) {
      case 'wait':
        emit({ type: 'acquire-waits', sandbox: wanted.id, owner: taken.record.owner });
        caller.slow({ kind: 'starting', record: taken.record });
        await clock.pause(LOOK_AGAIN_MS, caller.gaveUp);
        return 'moved';
      case 'ready': {
        tracked.remember(taken.record, sentAt, true);
        if (!taken.heldBefore && (await this.#isReplaced(taken.record, wanted))) return 'moved';
        const origin = taken.heldBefore ? 'reused' : 'reclaimed';
        return this.#releasingOnError(wanted.id, taken.hold, async () =>
          this.#startWhileNeeded(await this.#check(taken.record, taken.hold, origin, false, caller), wanted, caller),
        );
      }
      case 'starting':
        tracked.remember(taken.record, sentAt, true);
        return this.#startWhileNeeded({ reply: taken, residueHow: 'stop' }, wanted, caller);
    }
  }

  /**
   * True if the sandbox is of an older spec that is to be replaced, and nobody else holds it: its removal is claimed, and
   * the next take starts anew with it as residue. One that was made since this replica started is of a peer whose
   * profile may be newer than this one's, and is kept: two replicas never replace each other's in turn.
   */
  async #isReplaced({ id, fence, spec, createdAt }: LeaseRecord, { profile, spec: wanted }: Wanted): Promise<boolean> {
    const { store, startedAt } = this.#options;
    if (profile.onSpecChange !== 'replace' || spec === wanted || createdAt >= startedAt) return false;
    return (await store.claim(id, fence, { kind: 'replace' })) !== 'refused';
  }

  async #startWhileNeeded(first: Step, wanted: Wanted, caller: Waiting): Promise<Handout | 'moved'> {
    let step = first;
    while (isStart(step)) step = await this.#start(step, wanted, caller);
    return step;
  }

  /** A `ready` record with a hold of this caller's: is its container fit to be handed out? */
  async #check(ready: LeaseRecord, hold: HoldId, origin: Origin, brief: boolean, caller: Waiting): Promise<Step> {
    const { store, liveness, clock } = this.#options;
    const { id, container } = ready;
    if (container === null)
      throw new BrokerError(
        'record_unreadable',
        `The record of sandbox ${id} is ready without a container. DELETE it.`,
      );
    const known = liveness.urlOf(container);
    if (ready.verified && known !== null && known === ready.url)
      return { record: ready, url: known, hold, origin, brief };
    for (;;) {
      const seen = await this.#look(ready, container);
      if (seen.kind === 'running' && seen.container.role.kind === 'sandbox' && seen.container.url !== null) {
        const { url } = seen.container;
        if (ready.verified && ready.url === url) return { record: ready, url, hold, origin, brief };
        const record = await store.verify(id, container, url);
        return record === 'moved' ? 'moved' : { record, url, hold, origin, brief };
      }
      if (seen.kind === 'gone' || seen.kind === 'stopped') return this.#restart(id, container);
      const silent = seen.kind === 'unknown' && !hasCode(seen.cause, 'sandbox_unsettled', 'foreign_container');
      if (silent && ready.verified && ready.url !== null) {
        return { record: ready, url: ready.url, hold, origin, brief };
      }
      caller.slow({ kind: 'unsettled' });
      if (caller.gaveUp.aborted) throw unsettled(id, whyUnsettled(seen));
      await clock.pause(LOOK_AGAIN_MS, caller.gaveUp);
    }
  }

  /** Only the engine that the record names can say that its container is gone. */
  async #look(ready: LeaseRecord, container: ContainerId): Promise<Sighting> {
    const { engine, runtime } = this.#options;
    const mark = await engine.markOrUnknown();
    if (mark.kind === 'unknown') return mark;
    if (ready.engine === mark.mark) return runtime.look({ container });
    return { kind: 'unknown', cause: new Error('its record names another container engine') };
  }

  /** The container was seen dead: of all that see it, one starts anew. */
  async #restart(id: SandboxId, container: ContainerId): Promise<Step> {
    const { store, runtime, tracked, clock } = this.#options;
    const end = await runtime.postMortem(container).catch(() => null);
    const why = end === null ? null : { ...end, endedAt: end.endedAt ?? clock.wall() };
    const sentAt = clock.monotonic();
    const reply = await store.restart(id, container, why);
    if (reply === 'moved') return 'moved';
    tracked.remember(reply.record, sentAt, true);
    return { reply, residueHow: 'onlyIfStopped' };
  }

  /** My `starting`: clear the way, then use what is found under the name, or make a container. */
  async #start({ reply, residueHow }: Start, wanted: Wanted, caller: Waiting): Promise<Step> {
    const { store, runtime, teardown } = this.#options;
    const { id } = wanted;
    caller.slow({ kind: 'starting', record: reply.record });
    let made: ContainerId | null = null;
    try {
      if (reply.residue !== null && !(await teardown.clearResidue(reply, reply.residue, residueHow))) return 'moved';
      const seen = await runtime.look({ sandbox: id });
      if (seen.kind === 'unknown') throw cannotTell(id, seen.cause);
      if (seen.kind === 'stopped') {
        const next = await store.residue(id, reply.fence, seen.container.id);
        return next === 'moved' ? 'moved' : { reply: next, residueHow: 'onlyIfStopped' };
      }
      if (seen.kind === 'running') return await this.#useFound(seen.container, reply, wanted, caller);
      return await this.#make(reply, wanted, caller, (container) => {
        made = container;
      });
    } catch (error) {
      await this.#abandon(reply, made, error);
      throw error;
    }
  }

  async #make(
    reply: StartReply,
    wanted: Wanted,
    caller: Waiting,
    made: (container: ContainerId) => void,
  ): Promise<Step> {
    const { store, engine, starter, tracked, clock, holdTtlMs } = this.#options;
    const { id, profile, spec, identity } = wanted;
    const mark = await engine.mark();
    const { userId, threadId } = identity;
    const started = await starter.start({ id, fence: reply.fence, profile, spec, userId, threadId }, made);
    if (started === 'name_taken') return lookAgain(reply);
    const { container, url } = started;
    const brief = caller.gaveUp.aborted;
    const sentAt = clock.monotonic();
    const record = await store.activate({
      id,
      fence: reply.fence,
      container,
      engine: mark,
      url,
      found: false,
      since: reply.fence,
      spec,
      createdAt: null,
      holdMs: brief ? BRIEF_HOLD_MS : holdTtlMs,
    });
    if (record === 'moved') return 'moved';
    tracked.remember(record, sentAt, true);
    return { record, url, hold: reply.fence, origin: 'created', brief };
  }

  /**
   * A container runs under the name: the store lost its record, or a start was cut short. It may be busy, so it is
   * never removed here. It is looked at once more after the activation, since it may have been condemned in between.
   */
  async #useFound(found: Container, reply: StartReply, wanted: Wanted, caller: Waiting): Promise<Step> {
    const { store, engine, starter, tracked, clock, holdTtlMs } = this.#options;
    const { id } = wanted;
    const ready = await starter.ready(found.id, wanted.profile).catch((error: unknown) => {
      if (hasCode(error, 'sandbox_start_failed')) return 'ended' as const;
      if (hasCode(error, 'sandbox_not_ready')) return error;
      throw error;
    });
    if (ready === 'ended') return lookAgain(reply);
    const url = 'url' in ready ? ready.url : (found.url ?? '');
    const brief = caller.gaveUp.aborted;
    const sentAt = clock.monotonic();
    const record = await store.activate({
      id,
      fence: reply.fence,
      container: found.id,
      engine: await engine.mark(),
      url,
      found: true,
      since: found.labels.fence ?? NO_FENCE,
      spec: found.labels.spec,
      createdAt: found.createdAt,
      holdMs: brief ? BRIEF_HOLD_MS : holdTtlMs,
    });
    if (record === 'moved') return 'moved';
    tracked.remember(record, sentAt, true);
    return this.#releasingOnError(id, reply.fence, async () => {
      if (ready instanceof Error) throw ready;
      return this.#check(record, reply.fence, 'discovered', brief, caller);
    });
  }

  /**
   * A start that failed is claimed and removed with what it made, if it is still this replica's; later, if the store
   * does not answer. Never rejects.
   */
  async #abandon(reply: StartReply, made: ContainerId | null, error: unknown): Promise<void> {
    const { store, teardown, failedStarts, tracked, emit } = this.#options;
    const { id } = reply.record;
    const code = error instanceof BrokerError ? error.code : 'internal_error';
    emit({ type: 'start-failed', sandbox: id, fence: reply.fence, container: made, code, message: messageOf(error) });
    const container = made ?? reply.residue;
    const claim = await store.claim(id, reply.fence, { kind: 'failed-start', container }).catch(() => null);
    if (claim === null) {
      tracked.forget(id, reply.fence);
      failedStarts.note(id, reply.fence, container);
    } else if (claim !== 'refused') await teardown.run(claim, 'failed-start', made === null ? 'stop' : 'kill');
    else await store.release(id, reply.fence).catch(() => undefined);
  }

  async #releasingOnError<T>(id: SandboxId, hold: HoldId, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.#options.store.release(id, hold).catch(() => undefined);
      throw error;
    }
  }
}

function whyUnsettled(seen: Sighting): string {
  if (seen.kind === 'unknown') return messageOf(seen.cause);
  return 'its removal was begun and is about to finish or to be given up';
}

function cannotTell(id: SandboxId, cause: unknown): BrokerError {
  if (cause instanceof BrokerError) return cause;
  return new BrokerError('runtime_unavailable', `The container engine cannot say whether sandbox ${id} runs.`, {
    cause,
  });
}
