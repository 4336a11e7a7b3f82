import { BrokerError } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { ContainerId, SandboxId } from '../domain/ids.ts';
import { isExpired, type LeaseRecord } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Engine } from './engine.ts';
import type { RemovalOutcome, Teardown } from './teardown.ts';

export interface DestroyOptions {
  readonly store: Pick<LeaseStore, 'read' | 'condemnByIntent' | 'claim'>;
  readonly runtime: Pick<ContainerRuntime, 'look'>;
  readonly engine: Engine;
  readonly teardown: Teardown;
  readonly clock: Clock;
  readonly emit: Emit;
  /** How long one destruction goes on trying to get hold of a sandbox that is being started or removed. */
  readonly patienceMs: number;
}

/** `again`: somebody else is at it; look again. */
type Attempt = 'gone' | 'unfinished' | 'again';

const LOOK_AGAIN_MS = 50;

/**
 * Destroys a sandbox because a caller asked for it: from any replica, whoever owns or holds it. It goes for the
 * container that the record names at the time of asking, so that a request carried out late cannot hit a newer one.
 */
export class Destroy {
  readonly #options: DestroyOptions;

  constructor(options: DestroyOptions) {
    this.#options = options;
  }

  /**
   * `gone`: nothing is left of the sandbox. `unfinished`: its container could not be removed, and goes on being tried
   * by whoever finds it; or it is still being started or removed by somebody else. Either is told as an event. Rejects
   * with `store_unavailable`, or with the runtime's error when the engine cannot say what there is.
   */
  async run(id: SandboxId): Promise<'gone' | 'unfinished'> {
    const { clock, emit, patienceMs } = this.#options;
    const until = clock.monotonic() + patienceMs;
    for (;;) {
      const outcome = await this.#attempt(id);
      if (outcome !== 'again') return outcome;
      if (clock.monotonic() >= until) break;
      await clock.pause(LOOK_AGAIN_MS);
    }
    const message = 'it is still being started or removed by somebody else; if it stays, destroy it again';
    emit({ type: 'removal-failed', reason: 'explicit', message, sandbox: id });
    return 'unfinished';
  }

  /** One look, and what it asks for. */
  async #attempt(id: SandboxId): Promise<Attempt> {
    const { store, engine, teardown } = this.#options;
    const record = await this.#record(id);
    // Beside another engine the container would seem to be gone, and its record would be dropped.
    await engine.mark();
    if (record !== null && record.state === 'destroying') {
      if (!isExpired(record, record.now)) return 'again';
      const claim = await store.claim(id, record.fence, { kind: 'expired', container: null });
      return claim === 'refused' ? 'again' : finished(await teardown.run(claim, 'explicit'));
    }
    if (record !== null && record.state === 'starting' && !isExpired(record, record.now)) return 'again';
    const ready = record !== null && record.state === 'ready';
    const container = ready ? record.container : await this.#underTheName(id);
    const claim = await store.condemnByIntent(id, container);
    if (typeof claim === 'object') return finished(await teardown.run(claim, 'explicit'));
    if (claim === 'nothing') return record === null && container === null ? 'gone' : 'again';
    return 'again';
  }

  /** The record, null where there is none. One that cannot be read is treated as none: destroying clears it. */
  async #record(id: SandboxId): Promise<(LeaseRecord & { readonly now: number }) | null> {
    const seen = await this.#options.store.read(id);
    if (seen.kind !== 'record' || seen.record.state === 'gone') return null;
    return { ...seen.record, now: seen.now };
  }

  async #underTheName(id: SandboxId): Promise<ContainerId | null> {
    const seen = await this.#options.runtime.look({ sandbox: id });
    if (seen.kind === 'gone') return null;
    if (seen.kind !== 'unknown') return seen.container.id;
    if (seen.cause instanceof BrokerError) throw seen.cause;
    throw new BrokerError('runtime_unavailable', `The container engine cannot say whether sandbox ${id} exists.`, {
      cause: seen.cause,
    });
  }
}

const finished = (outcome: RemovalOutcome): Attempt =>
  outcome === 'removed' ? 'gone' : outcome === 'failed' ? 'unfinished' : 'again';
