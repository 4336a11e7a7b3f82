import type { Previous } from '../domain/errors.ts';
import type { HistoryEntry } from '../domain/history.ts';
import { formatFence } from '../domain/ids.ts';
import type { AcquireOutcome, ReadinessView, SandboxView } from '../service/api.ts';
import type { LogsView } from '../service/history.ts';
import type { AcquiredBody, EventsBody, LogsBody, PreviousBody, ReadinessBody, SandboxBody } from './schemas.ts';

/** Epoch milliseconds as RFC 3339 in UTC. */
const timestamp = (ms: number): string => new Date(ms).toISOString();

export function sandboxBody(view: SandboxView): SandboxBody {
  return {
    id: view.id,
    profile: view.profile,
    userId: view.userId,
    threadId: view.threadId,
    url: view.url,
    state: view.state,
    holds: view.holds,
    owner: view.owner,
    createdAt: timestamp(view.createdAt),
    lastActiveAt: timestamp(view.lastActiveAt),
    warmUntil: view.warmUntil === null ? null : timestamp(view.warmUntil),
  };
}

/** `previous` is left out where there was none. */
export function acquiredBody(outcome: Extract<AcquireOutcome, { kind: 'ready' }>): AcquiredBody {
  const body: AcquiredBody = {
    ...sandboxBody(outcome.sandbox),
    holdId: formatFence(outcome.hold),
    origin: outcome.origin,
  };
  if (outcome.previous !== null) body.previous = previousBody(outcome.previous);
  return body;
}

export function previousBody(previous: Previous): PreviousBody {
  const { endedAt, reason, exitCode, logTail } = previous;
  return { endedAt: timestamp(endedAt), reason, exitCode, logTail };
}

export function eventsBody(entries: readonly HistoryEntry[]): EventsBody {
  return { items: entries.map(({ at, ...entry }) => ({ at: timestamp(at), ...entry })) };
}

export function logsBody({ endedAt, ...logs }: LogsView): LogsBody {
  return { ...logs, endedAt: endedAt === null ? null : timestamp(endedAt) };
}

export function readinessBody({ ready, because, dependencies }: ReadinessView): ReadinessBody {
  return { ready, because, dependencies };
}
