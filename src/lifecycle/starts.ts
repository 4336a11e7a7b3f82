import type { Container } from '../domain/container.ts';
import { BrokerError, codeOf, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { type ContainerId, NO_FENCE } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore, StartReply } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Engine } from './engine.ts';
import type { FailedStarts } from './failed-starts.ts';
import type { Start, Step, Waiting, Wanted } from './handout.ts';
import type { Started, Starter } from './starter.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface StartsOptions {
  readonly store: Pick<LeaseStore, 'activate' | 'residue' | 'claim' | 'claimSpare' | 'release'>;
  readonly runtime: Pick<ContainerRuntime, 'look' | 'dedicate'>;
  readonly engine: Engine;
  readonly starter: Starter;
  readonly teardown: Teardown;
  readonly failedStarts: FailedStarts;
  readonly tracked: TrackedLeases;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly holdTtlMs: number;
}

/** How long the hold of a start lasts that nobody waited for. */
const BRIEF_HOLD_MS = 60_000;

/** The same start, once more from the look under the name. */
const lookAgain = (reply: StartReply): Start => ({ reply: { ...reply, residue: null }, residueHow: 'onlyIfStopped' });

/** Carries this replica's `starting` leases on until their sandboxes are ready. */
export class Starts {
  readonly #options: StartsOptions;

  constructor(options: StartsOptions) {
    this.#options = options;
  }

  /**
   * Clears the way, then uses what is found under the name, or makes a container, and activates it. Resolves with a
   * handout, with a sandbox that has yet to be looked at (it was found), with the same start to be gone on with, or with
   * `moved`. One that fails rejects, and leaves nothing of its own behind.
   */
  async run({ reply, residueHow }: Start, wanted: Wanted, caller: Waiting): Promise<Step> {
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
      const noteMade = (container: ContainerId): void => {
        made = container;
      };
      const spare = await this.#useSpare(reply, wanted, caller, noteMade);
      return spare ?? (await this.#make(reply, wanted, caller, noteMade));
    } catch (error) {
      await this.#abandon(reply, made, error);
      throw error;
    }
  }

  /**
   * A spare becomes the sandbox: claimed in the store, renamed, then looked at, since it may have died in the pool. Null:
   * there is none. One that is of no use is removed by whoever tends the pool.
   */
  async #useSpare(
    reply: StartReply,
    wanted: Wanted,
    caller: Waiting,
    made: (container: ContainerId) => void,
  ): Promise<Step | null> {
    const { store, runtime } = this.#options;
    const { id, profile, spec } = wanted;
    if (profile.spares === 0) return null;
    const spare = await store.claimSpare(id, reply.fence, profile.name, spec);
    if (spare === null || spare === 'moved') return spare;
    const { container } = spare;
    made(container);
    await runtime.dedicate(id, spare);
    const seen = await runtime.look({ sandbox: id });
    if (seen.kind === 'unknown') throw cannotTell(id, seen.cause);
    const fit = seen.kind === 'running' && seen.container.id === container && seen.container.url !== null;
    if (!fit) return lookAgain(reply); // the start is still this replica's: it goes on, whether or not anybody waits
    return this.#activateMade(reply, wanted, caller, { container, url: seen.container.url }, 'spare');
  }

  async #make(
    reply: StartReply,
    wanted: Wanted,
    caller: Waiting,
    made: (container: ContainerId) => void,
  ): Promise<Step> {
    const { engine, starter, tracked, clock } = this.#options;
    const { id, profile, spec, identity } = wanted;
    await engine.mark();
    const { userId, threadId } = identity;
    const { fence } = reply;
    const isMine = (): boolean => tracked.current(id, clock.monotonic())?.record.fence === fence;
    const started = await starter.start({ id, fence, profile, spec, userId, threadId }, made, isMine);
    if (started === 'moved') return 'moved';
    if (started === 'name_taken') return lookAgain(reply);
    return this.#activateMade(reply, wanted, caller, started, 'created');
  }

  async #activateMade(
    reply: StartReply,
    { id, spec }: Wanted,
    caller: Waiting,
    { container, url }: Started,
    origin: 'created' | 'spare',
  ): Promise<Step> {
    const { store, engine, tracked, clock, holdTtlMs } = this.#options;
    const brief = caller.gaveUp.aborted;
    const sentAt = clock.monotonic();
    const record = await store.activate({
      id,
      fence: reply.fence,
      container,
      engine: await engine.mark(),
      url,
      found: false,
      since: reply.fence,
      spec,
      createdAt: null,
      holdMs: brief ? BRIEF_HOLD_MS : holdTtlMs,
    });
    if (record === 'moved') return 'moved';
    tracked.remember(record, sentAt, true);
    return { record, url, hold: reply.fence, origin, brief };
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
    if (!(ready instanceof Error)) return { record, hold: reply.fence, origin: 'discovered', brief };
    await store.release(id, reply.fence).catch(() => undefined);
    throw ready;
  }

  /**
   * A start that failed is claimed and removed with what it made, if it is still this replica's; later, if the store
   * does not answer. Never rejects.
   */
  async #abandon(reply: StartReply, made: ContainerId | null, error: unknown): Promise<void> {
    const { store, teardown, failedStarts, tracked, emit } = this.#options;
    const { id } = reply.record;
    const code = codeOf(error) ?? 'internal_error';
    emit({ type: 'start-failed', sandbox: id, fence: reply.fence, container: made, code, message: messageOf(error) });
    const container = made ?? reply.residue;
    const claim = await store.claim(id, reply.fence, { kind: 'failed-start', container }).catch(() => null);
    if (claim === null) {
      tracked.forget(id, reply.fence);
      failedStarts.note(id, reply.fence, container);
    } else if (claim !== 'refused') await teardown.run(claim, 'failed-start', made === null ? 'stop' : 'kill');
    else {
      // Activated without a reply, or a peer's: what is remembered is a start that nobody carries on.
      tracked.forget(id, reply.fence);
      await store.release(id, reply.fence).catch(() => undefined);
    }
  }
}

function cannotTell(id: string, cause: unknown): BrokerError {
  if (cause instanceof BrokerError) return cause;
  return new BrokerError('runtime_unavailable', `The container engine cannot say whether sandbox ${id} runs.`, {
    cause,
  });
}
