import { BrokerError, codeOf, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { sandboxId } from '../domain/identity.ts';
import type { SandboxId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { Acquire } from '../lifecycle/acquire.ts';
import type { BackgroundTasks } from '../lifecycle/background-tasks.ts';
import { type Handout, unsettled } from '../lifecycle/handout.ts';
import type { Turn, Turns } from '../lifecycle/turns.ts';
import type { AcquireOutcome, AcquireRequest, Caller } from './api.ts';
import { sandboxView } from './views.ts';

export interface HandoutsOptions {
  readonly store: Pick<LeaseStore, 'read' | 'release'>;
  readonly acquire: Acquire;
  readonly turns: Turns;
  readonly tasks: BackgroundTasks;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly deployment: string;
  /** Profiles with the hash of what each makes of a container. */
  readonly profiles: ReadonlyMap<string, { readonly profile: Profile; readonly spec: string }>;
  /** How long a caller waits who does not say. */
  readonly waitMs: number;
  readonly idleMs: number;
  /** Aborts when shutdown waits for nobody any more. */
  readonly drained: AbortSignal;
}

const DEFAULT_PROFILE = 'default';
const ASK_AGAIN_MS = 1_000;
/** An abort without a reason makes an error with a stack, each time. */
const OVER = 'over';

/** Acquires as callers see them: how long they wait, what they are told meanwhile, what becomes of those who leave. */
export class Handouts {
  readonly #options: HandoutsOptions;

  constructor(options: HandoutsOptions) {
    this.#options = options;
  }

  async acquire(request: AcquireRequest, caller: Caller): Promise<AcquireOutcome> {
    const { clock, emit, deployment, acquire, turns, tasks, drained } = this.#options;
    const { profile, spec } = this.#profile(request.profile);
    const identity = { deployment, profile: profile.name, userId: request.userId, threadId: request.threadId };
    const id = sandboxId(identity);
    const patience = new Patience(clock, request.waitMs ?? this.#options.waitMs, [caller.gone, drained]);
    const began = clock.monotonic();
    const turn = turns.enter(id, patience.over, (waiting) => acquire.run({ id, identity, profile, spec }, waiting));
    tasks.add(turn.result);
    try {
      const outcome = await this.#outcome(id, turn, patience, caller).catch((error: unknown) => {
        // Whoever left a line because of the shutdown finds a place in another replica's.
        const leftLine = drained.aborted && hasCode(error, 'capacity_exhausted', 'user_capacity_exhausted');
        throw leftLine ? shuttingDown() : error;
      });
      if (outcome.kind === 'ready') {
        emit({
          type: 'acquired',
          sandbox: id,
          fence: outcome.hold,
          origin: outcome.origin,
          durationMs: clock.monotonic() - began,
        });
      }
      return outcome;
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      const durationMs = clock.monotonic() - began;
      emit({ type: 'acquire-failed', sandbox: id, code, message: messageOf(error), durationMs });
      throw error;
    } finally {
      patience.end();
    }
  }

  #profile(name = DEFAULT_PROFILE): { readonly profile: Profile; readonly spec: string } {
    const found = this.#options.profiles.get(name);
    if (found !== undefined) return found;
    const known = [...this.#options.profiles.keys()].join(', ');
    throw new BrokerError('unknown_profile', `There is no profile "${name.slice(0, 64)}". Configured: ${known}.`);
  }

  async #outcome(id: SandboxId, turn: Turn, patience: Patience, caller: Caller): Promise<AcquireOutcome> {
    const slow = patience.ended.then(() => turn.slow).then((first) => turn.latest ?? first);
    let first = await Promise.race([turn.result, slow]);
    // An acquire that is not settled ends by itself when nobody waits any more, and says why.
    if (first !== null && 'kind' in first && first.kind === 'unsettled' && turn.begun) first = await turn.result;
    if (first === null) return this.#askAgain(id);
    if ('hold' in first) {
      if (caller.gone.aborted) this.#giveUp(first);
      return this.#ready(first);
    }
    turn.result.then((late) => late !== null && this.#giveUp(late)).catch(() => undefined);
    if (this.#options.drained.aborted) throw shuttingDown();
    if (first.kind === 'unsettled') throw unsettled(id, 'an earlier request for it cannot tell its state yet');
    return this.#starting(first.record);
  }

  #ready({ record, url, hold, origin }: Handout): AcquireOutcome {
    const view = sandboxView(record, record.lastActiveAt, this.#options.idleMs);
    if (view === null) throw new BrokerError('internal_error', `Sandbox ${record.id} was handed out as a tombstone.`);
    const previous = origin === 'created' || origin === 'spare' ? record.previous : null;
    return { kind: 'ready', sandbox: { ...view, url }, hold, origin, previous };
  }

  #starting(record: LeaseRecord): AcquireOutcome {
    const view = sandboxView({ ...record, state: 'starting' }, record.lastActiveAt, this.#options.idleMs);
    if (view === null) throw unsettled(record.id, 'it is gone');
    return { kind: 'starting', sandbox: view, retryAfterMs: ASK_AGAIN_MS };
  }

  /** Its turn never came while somebody waited: told as whatever the record says now. */
  async #askAgain(id: SandboxId): Promise<AcquireOutcome> {
    if (this.#options.drained.aborted) throw shuttingDown();
    const seen = await this.#options.store.read(id);
    if (seen.kind !== 'record' || seen.record.state === 'gone')
      throw unsettled(id, 'an earlier request for it came to nothing');
    return this.#starting(seen.record);
  }

  /** Nobody got this handout. A brief hold runs out by itself; it is there for whoever asks again. */
  #giveUp({ record, hold, brief }: Handout): void {
    if (brief) return;
    this.#options.tasks.add(this.#options.store.release(record.id, hold)).catch(() => undefined);
  }
}

const shuttingDown = (): BrokerError =>
  new BrokerError('shutting_down', 'This replica is shutting down. Send the request again; another one answers it.', {
    retryAfterMs: 1_000,
  });

/** How long a caller waits: until its time is over, or it has hung up. */
class Patience {
  readonly over: AbortSignal;
  readonly ended: Promise<void>;
  readonly #over = new AbortController();
  readonly #timer = new AbortController();
  readonly #leavers: readonly AbortSignal[];
  readonly #leave = (): void => this.#over.abort();

  constructor(clock: Clock, waitMs: number, leavers: readonly AbortSignal[]) {
    this.over = this.#over.signal;
    this.#leavers = leavers;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.over.addEventListener('abort', () => resolve(), { once: true });
    for (const leaver of leavers) leaver.addEventListener('abort', this.#leave, { once: true });
    if (waitMs === 0 || leavers.some((leaver) => leaver.aborted)) this.#leave();
    else
      void clock.pause(waitMs, this.#timer.signal).then(() => {
        if (!this.#timer.signal.aborted) this.#leave();
      });
  }

  /** Nobody waits for the outcome any more, or it is there: timers and listeners go. What `over` says stays. */
  end(): void {
    this.#timer.abort(OVER);
    for (const leaver of this.#leavers) leaver.removeEventListener('abort', this.#leave);
  }
}
