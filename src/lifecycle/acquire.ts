import type { Sighting } from '../domain/container.ts';
import { BrokerError, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { ContainerId, SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Admission } from './admission.ts';
import type { Engine } from './engine.ts';
import { type Handout, type Step, type Unchecked, unsettled, type Waiting, type Wanted } from './handout.ts';
import type { Liveness } from './liveness.ts';
import type { Starts } from './starts.ts';
import type { TrackedLeases } from './tracked.ts';

export interface AcquireOptions {
  readonly store: Pick<LeaseStore, 'verify' | 'restart' | 'claim' | 'release'>;
  readonly runtime: Pick<ContainerRuntime, 'look' | 'postMortem'>;
  readonly admission: Admission;
  readonly engine: Engine;
  readonly liveness: Liveness;
  readonly starts: Starts;
  readonly tracked: TrackedLeases;
  readonly clock: Clock;
  readonly emit: Emit;
  /** Monotonic clock at this replica's start. */
  readonly startedAt: number;
}

const LOOK_AGAIN_MS = 50;

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
        // Its removal is claimed: the next take is this caller's start, whether or not it still waits.
        if (!taken.heldBefore && (await this.#isReplaced(taken.record, wanted)))
          return this.#takeAndUse(wanted, caller);
        const origin = taken.heldBefore ? 'reused' : 'reclaimed';
        const ready = { record: taken.record, hold: taken.hold, origin, brief: false } as const;
        return this.#untilHandedOut(ready, wanted, caller);
      }
      case 'starting':
        tracked.remember(taken.record, sentAt, true);
        return this.#untilHandedOut({ reply: taken, residueHow: 'stop' }, wanted, caller);
    }
  }

  /**
   * True if the sandbox is of an older spec that is to be replaced, and nobody else holds it: its removal is claimed, and
   * the next take starts anew with it as residue. One that was made since this replica started is of a peer whose
   * profile may be newer than this one's, and is kept: two replicas never replace each other's in turn.
   */
  async #isReplaced(record: LeaseRecord, { profile, spec: wanted }: Wanted): Promise<boolean> {
    const { store, clock, startedAt } = this.#options;
    const { id, fence, spec, createdAt, lastActiveAt } = record;
    if (profile.onSpecChange !== 'replace' || spec === wanted) return false;
    // Its age by the store's clock, which was `lastActiveAt` when it was taken; no two clocks are compared.
    if (lastActiveAt - createdAt <= clock.monotonic() - startedAt) return false;
    try {
      return (await store.claim(id, fence, { kind: 'replace' })) !== 'refused';
    } catch (error) {
      await store.release(id, fence).catch(() => undefined);
      throw error;
    }
  }

  async #untilHandedOut(first: Step, wanted: Wanted, caller: Waiting): Promise<Handout | 'moved'> {
    let step = first;
    while (step !== 'moved' && !('url' in step)) {
      step =
        'reply' in step
          ? await this.#options.starts.run(step, wanted, caller)
          : await this.#releasingOnError(step, caller);
    }
    return step;
  }

  /** A `ready` record with a hold of this caller's: is its container fit to be handed out? */
  async #check({ record: ready, ...handout }: Unchecked, caller: Waiting): Promise<Step> {
    const { store, liveness, clock } = this.#options;
    const { id, container } = ready;
    if (container === null)
      throw new BrokerError(
        'record_unreadable',
        `The record of sandbox ${id} is ready without a container. DELETE it.`,
      );
    const known = liveness.urlOf(container);
    if (ready.verified && known !== null && known === ready.url) return { record: ready, url: known, ...handout };
    for (let looks = 1; ; looks += 1) {
      const seen = await this.#look(ready, container);
      if (seen.kind === 'running' && seen.container.role.kind === 'sandbox' && seen.container.url !== null) {
        const { url } = seen.container;
        if (ready.verified && ready.url === url) return { record: ready, url, ...handout };
        const record = await store.verify(id, container, url);
        return record === 'moved' ? 'moved' : { record, url, ...handout };
      }
      if (seen.kind === 'gone' || seen.kind === 'stopped') {
        // Whoever was told that it is unsettled and waits for nothing more is to hear of an end, not to wait for a start.
        if (looks > 1 && caller.gaveUp.aborted) throw unsettled(id, 'its container has just ended');
        return this.#restart(id, container);
      }
      const silent = seen.kind === 'unknown' && !hasCode(seen.cause, 'sandbox_unsettled', 'foreign_container');
      if (silent && ready.verified && ready.url !== null) {
        return { record: ready, url: ready.url, ...handout };
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

  async #releasingOnError(unchecked: Unchecked, caller: Waiting): Promise<Step> {
    try {
      return await this.#check(unchecked, caller);
    } catch (error) {
      await this.#options.store.release(unchecked.record.id, unchecked.hold).catch(() => undefined);
      throw error;
    }
  }
}

function whyUnsettled(seen: Sighting): string {
  if (seen.kind === 'unknown') return messageOf(seen.cause);
  return 'its removal was begun and is about to finish or to be given up';
}
