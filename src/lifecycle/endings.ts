import type { Emit } from '../domain/events.ts';
import type { ContainerId, SandboxId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Engine } from './engine.ts';
import type { TrackedLeases } from './tracked.ts';

export interface EndingsOptions {
  readonly store: Pick<LeaseStore, 'end'>;
  readonly runtime: Pick<ContainerRuntime, 'look' | 'postMortem'>;
  readonly engine: Pick<Engine, 'settle'>;
  readonly tracked: TrackedLeases;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** Sandboxes whose container ended by itself. */
export class Endings {
  readonly #options: EndingsOptions;

  constructor(options: EndingsOptions) {
    this.#options = options;
  }

  /**
   * To be called for a container that seems to have ended: it is looked at once more, and if that is so the record
   * becomes a tombstone that tells why. Nothing happens to a record that names another container, or is a live peer's.
   * False if it runs, or cannot be seen. Rejects with `store_unavailable`, or with the engine's error when it is missing
   * and the engine is not known to be the deployment's. Idempotent.
   */
  async note(id: SandboxId, container: ContainerId, exitCode: number | null = null): Promise<boolean> {
    const { store, runtime, engine, tracked, clock, emit } = this.#options;
    const seen = await runtime.look({ container });
    if (seen.kind !== 'gone' && seen.kind !== 'stopped') return false;
    // Another engine may stand at the same address by now: what is missing there has not ended.
    if (seen.kind === 'gone') await engine.settle();
    const end = await runtime.postMortem(container).catch(() => null);
    const why = {
      endedAt: end?.endedAt ?? clock.wall(),
      reason: end?.reason ?? 'its container was removed by somebody else',
      exitCode: end?.exitCode ?? exitCode,
      logTail: end?.logTail ?? '',
    };
    if ((await store.end(id, container, why)) === 'nothing') return true;
    const mine = tracked.current(id, clock.monotonic());
    if (mine?.record.container === container) tracked.forget(id, mine.record.fence);
    emit({ type: 'ended', sandbox: id, container, reason: why.reason, exitCode: why.exitCode });
    return true;
  }
}
