import { BrokerError, messageOf, type Previous } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { HistoryEntry } from '../domain/history.ts';
import type { HoldId, OwnerId, SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore, SparePool } from '../leases/lease-store.ts';
import type { BackgroundTasks } from '../lifecycle/background-tasks.ts';
import type { Destroy } from '../lifecycle/destroy.ts';
import type {
  AcquireOutcome,
  AcquireRequest,
  Caller,
  ListQuery,
  ReadinessView,
  SandboxService,
  SandboxView,
  StatusView,
} from './api.ts';
import type { Handouts } from './handouts.ts';
import type { LogsView, SandboxHistory } from './history.ts';
import { countSandboxes, listSandboxes } from './listing.ts';
import type { Readiness } from './readiness.ts';
import { sandboxView } from './views.ts';

export interface SandboxesOptions {
  readonly store: LeaseStore;
  readonly handouts: Handouts;
  readonly destroy: Destroy;
  readonly history: SandboxHistory;
  readonly readiness: Readiness;
  readonly tasks: BackgroundTasks;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly about: {
    readonly owner: OwnerId;
    readonly deployment: string;
    readonly version: string;
    readonly store: 'memory' | 'redis';
    readonly maxSandboxes: number;
    /** Spares wanted, by profile. */
    readonly spares: ReadonlyMap<string, number>;
  };
  /** How many callers wait for a slot in this replica. */
  readonly waiting: () => number;
  readonly idleMs: number;
  /** How long a caller waits for a destruction before it is told that it goes on. */
  readonly destroyWaitMs: number;
}

/** The broker's API, without HTTP. */
export class Sandboxes implements SandboxService {
  readonly #options: SandboxesOptions;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  acquire(request: AcquireRequest, caller: Caller): Promise<AcquireOutcome> {
    return this.#options.handouts.acquire(request, caller);
  }

  async keepalive(id: SandboxId, hold: HoldId): Promise<SandboxView> {
    const record = await this.#options.store.keepalive(id, hold);
    if (record === 'hold_lost') {
      throw new BrokerError(
        'hold_lost',
        `The container of sandbox ${id} that this hold was for is gone. Acquire again.`,
      );
    }
    return this.#view(id, record);
  }

  async release(id: SandboxId, hold: HoldId): Promise<SandboxView> {
    const { store, emit } = this.#options;
    const view = await this.#view(id, await store.release(id, hold));
    emit({ type: 'released', sandbox: id, fence: hold });
    return view;
  }

  async destroy(id: SandboxId): Promise<'gone' | 'removing'> {
    const { destroy, tasks, clock, emit, destroyWaitMs } = this.#options;
    const patience = new AbortController();
    const work = tasks.add(destroy.run(id));
    let answered = false;
    work.catch((error: unknown) => {
      // The caller has been told that it goes on: that it does not is told in the log.
      const message = `${messageOf(error)}; destroy it again`;
      if (answered) emit({ type: 'removal-failed', reason: 'explicit', message, sandbox: id });
    });
    const late = clock.pause(destroyWaitMs, patience.signal).then(() => 'unfinished' as const);
    try {
      return (await Promise.race([work, late])) === 'gone' ? 'gone' : 'removing';
    } finally {
      answered = true;
      patience.abort();
    }
  }

  async get(id: SandboxId): Promise<SandboxView> {
    const seen = await this.#options.store.read(id);
    if (seen.kind === 'absent') throw notFound(id, null);
    if (seen.kind === 'unreadable') {
      throw new BrokerError(
        'record_unreadable',
        `The record of sandbox ${id} cannot be read (${seen.reason}). DELETE clears it, unless a newer broker wrote it.`,
      );
    }
    const view = sandboxView(seen.record, seen.now, this.#options.idleMs);
    if (view === null) throw notFound(id, seen.record.previous);
    return view;
  }

  list(query: ListQuery): Promise<{ items: readonly SandboxView[]; nextCursor: string | null }> {
    return listSandboxes(this.#options.store, query, this.#options.idleMs);
  }

  events(id: SandboxId): Promise<readonly HistoryEntry[]> {
    return this.#options.history.events(id);
  }

  logs(id: SandboxId): Promise<LogsView> {
    return this.#options.history.logs(id);
  }

  async status(): Promise<StatusView> {
    const { store, readiness, about, waiting } = this.#options;
    const [sandboxes, pool, ready] = await Promise.all([countSandboxes(store), store.pool(), readiness.view()]);
    const { owner, deployment, version, maxSandboxes, spares } = about;
    const used = sandboxes.starting + sandboxes.active + sandboxes.warm + sandboxes.destroying;
    return {
      owner,
      deployment,
      version,
      store: about.store,
      sandboxes,
      capacity: { max: maxSandboxes, used, waiting: waiting() },
      spares: Object.fromEntries([...spares].map(([name, wanted]) => [name, { ready: readyIn(pool, name), wanted }])),
      ...ready,
    };
  }

  readiness(): Promise<ReadinessView> {
    return this.#options.readiness.view();
  }

  /**
   * What the store has just answered, in which only holds that count are left: no clock of this replica's judges them.
   * `not_found` tells how the sandbox ended, for as long as that is known.
   */
  async #view(id: SandboxId, record: LeaseRecord | 'not_found'): Promise<SandboxView> {
    const { store, idleMs } = this.#options;
    const view = record === 'not_found' ? null : sandboxView(record, record.lastActiveAt, idleMs);
    if (view !== null) return view;
    const seen = await store.read(id);
    throw notFound(id, seen.kind === 'record' && seen.record.state === 'gone' ? seen.record.previous : null);
  }
}

const readyIn = (pool: SparePool, profile: string): number =>
  pool.spares.filter((spare) => spare.profile === profile).length;

function notFound(id: SandboxId, previous: Previous | null): BrokerError {
  const why = previous === null ? '' : ` It ended: ${previous.reason}.`;
  return new BrokerError('sandbox_not_found', `There is no sandbox ${id}.${why} Acquire makes one.`, { previous });
}
