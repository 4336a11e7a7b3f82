import type { ErrorCode } from '../domain/errors.ts';
import type { BrokerEvent, Emit, Origin } from '../domain/events.ts';
import { ORIGINS } from '../domain/events.ts';
import type { HistoryEntry } from '../domain/history.ts';
import type { ContainerId, OwnerId, SandboxId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { HistoryLine, HistoryStore } from '../leases/history-store.ts';

export interface HistoryOptions {
  readonly store: Pick<HistoryStore, 'append'>;
  readonly owner: OwnerId;
  readonly clock: Pick<Clock, 'wall'>;
  readonly emit: Emit;
}

/** What waits to be written; beyond that the oldest are dropped. */
const MOST_WAITING = 5_000;
/** Why an acquire of any sandbox would have failed just then. */
const OF_THE_REPLICA: readonly ErrorCode[] = ['store_unavailable', 'shutting_down'];

/**
 * Writes down what happens to sandboxes, for whoever asks later why. Told of every event, it never waits and never
 * fails: the lines go to the store in batches, and are kept while that does not answer.
 */
export class History {
  readonly #options: HistoryOptions;
  #waiting: HistoryLine[] = [];
  #dropped = 0;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  note(event: BrokerEvent): void {
    const line = lineOf(event, this.#options.owner, this.#options.clock.wall());
    if (line === null) return;
    this.#keep([line]);
  }

  /** Rejects with `store_unavailable`; what was not written stays. */
  async flush(): Promise<void> {
    const { store, emit } = this.#options;
    if (this.#dropped > 0) emit({ type: 'history-dropped', lines: this.#dropped });
    this.#dropped = 0;
    if (this.#waiting.length === 0) return;
    const lines = this.#waiting;
    this.#waiting = [];
    try {
      await store.append(lines);
    } catch (error) {
      const later = this.#waiting;
      this.#waiting = lines;
      this.#keep(later);
      throw error;
    }
  }

  #keep(lines: readonly HistoryLine[]): void {
    for (const line of lines) this.#waiting.push(line);
    const excess = this.#waiting.length - MOST_WAITING;
    if (excess <= 0) return;
    this.#waiting.splice(0, excess);
    this.#dropped += excess;
  }
}

interface About {
  readonly sandbox: SandboxId | null;
  readonly container?: ContainerId | null;
}

/** Null for what is of no sandbox, or is told by another event. */
function lineOf(event: BrokerEvent, owner: OwnerId, at: number): HistoryLine | null {
  const line = (
    { sandbox, container = null }: About,
    what: HistoryEntry['event'],
    reason: string | null = null,
    key: string | null = null,
  ): HistoryLine | null =>
    sandbox === null ? null : { id: sandbox, entry: { at, event: what, owner, reason, key, container } };
  switch (event.type) {
    case 'audit':
      return lineOfAudit(event, line);
    case 'acquire-failed':
      return OF_THE_REPLICA.includes(event.code) ? null : line(event, 'refused', event.code);
    case 'started':
      return line(event, 'started');
    case 'start-failed':
      return line(event, 'start-failed', event.code);
    case 'adopted':
      return line(event, 'adopted');
    case 'lease-reasserted':
      return line(event, 'reasserted');
    case 'lease-lost':
      return line(event, 'lost');
    case 'ended':
      return line(
        event,
        'ended',
        event.exitCode === null ? event.reason : `${event.reason} (exit code ${event.exitCode})`,
      );
    case 'claimed':
      return line(event, 'claimed', event.reason);
    case 'removed':
      return event.reason === 'spare' ? null : line(event, 'removed', event.reason);
    case 'removal-stopped':
      return line(event, 'kept', `${event.reason}: ${event.because}`);
    case 'removal-failed':
      return event.reason === 'spare' ? null : line(event, 'removal-failed', event.reason);
    default:
      return null;
  }
}

type Line = (
  about: About,
  what: HistoryEntry['event'],
  reason?: string | null,
  key?: string | null,
) => HistoryLine | null;

/** What callers did, and with which key. */
function lineOfAudit({ action, outcome, key, ...about }: Extract<BrokerEvent, { type: 'audit' }>, line: Line) {
  if (action === 'acquire') {
    return ORIGINS.includes(outcome as Origin) ? line(about, 'held', outcome, key) : null;
  }
  if (action === 'release') return outcome === 'released' ? line(about, 'released', null, key) : null;
  if (action !== 'destroy') return null;
  return line(about, 'destroy-asked', outcome === 'gone' || outcome === 'removing' ? null : outcome, key);
}
