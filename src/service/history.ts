import { BrokerError, type Previous } from '../domain/errors.ts';
import type { HistoryEntry } from '../domain/history.ts';
import type { ContainerId, SandboxId } from '../domain/ids.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';

export interface HistoryOptions {
  readonly store: Pick<LeaseStore, 'read' | 'history'>;
  readonly runtime: Pick<ContainerRuntime, 'postMortem'>;
}

/** The last log lines of a sandbox's container. */
export interface LogsView {
  /** False for one that ended, or is gone. */
  readonly running: boolean;
  readonly container: ContainerId | null;
  /** How it ended; null while it runs. */
  readonly reason: string | null;
  readonly exitCode: number | null;
  readonly endedAt: number | null;
  readonly logTail: string;
}

/** Why a sandbox is as it is: what happened to it, and what its container said last. Counts as no activity. */
export class SandboxHistory {
  readonly #options: HistoryOptions;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Oldest first. Rejects with `sandbox_not_found` where nothing is known. */
  async events(id: SandboxId): Promise<readonly HistoryEntry[]> {
    const { store } = this.#options;
    const entries = await store.history.read(id);
    if (entries.length === 0 && (await store.read(id)).kind === 'absent') throw unknown(id);
    return entries;
  }

  /**
   * Of the container that the record names, else of the one that ended last. Rejects with `sandbox_not_found` where
   * neither is known any more, and as the runtime does.
   */
  async logs(id: SandboxId): Promise<LogsView> {
    const seen = await this.#options.store.read(id);
    if (seen.kind === 'unreadable') {
      throw new BrokerError('record_unreadable', `The record of sandbox ${id} cannot be read (${seen.reason}).`);
    }
    if (seen.kind === 'absent') throw unknown(id);
    const { container, previous } = seen.record;
    const end = container === null ? null : await this.#options.runtime.postMortem(container);
    if (end !== null) {
      const running = end.exitCode === null && end.reason === 'running';
      const ended = running ? { reason: null, exitCode: null, endedAt: null } : end;
      return { running, container, logTail: end.logTail, ...pick(ended) };
    }
    if (previous === null) throw unknown(id);
    return { running: false, container: null, logTail: previous.logTail, ...pick(previous) };
  }
}

const pick = ({ reason, exitCode, endedAt }: Pick<LogsView, 'reason' | 'exitCode' | 'endedAt'>) => ({
  reason,
  exitCode,
  endedAt,
});

function unknown(id: SandboxId): BrokerError {
  return new BrokerError(
    'sandbox_not_found',
    `Nothing is known of sandbox ${id}: there is none, and what there was ended too long ago.`,
    { previous: null as Previous | null },
  );
}
