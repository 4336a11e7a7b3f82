import type { Previous } from '../domain/errors.ts';
import type { Origin } from '../domain/events.ts';
import type { HistoryEntry } from '../domain/history.ts';
import type { HoldId, OwnerId, SandboxId } from '../domain/ids.ts';
import type { ShownState } from '../domain/sandbox.ts';
import type { LogsView } from './history.ts';

/**
 * What the API promises, without HTTP. Errors are `BrokerError`s. Times are epoch milliseconds; the HTTP layer writes
 * them as RFC 3339.
 */
export interface SandboxService {
  /**
   * `ready`: usable now. `starting`: not within `waitMs`; the start goes on, ask again. Counts as one handout each
   * time it answers `ready`.
   */
  acquire(request: AcquireRequest, caller: Caller): Promise<AcquireOutcome>;
  keepalive(id: SandboxId, hold: HoldId): Promise<SandboxView>;
  release(id: SandboxId, hold: HoldId): Promise<SandboxView>;
  /** `gone`: nothing is left, also when nothing was. `removing`: it goes on in the background. */
  destroy(id: SandboxId): Promise<'gone' | 'removing'>;
  /** Rejects with `sandbox_not_found`, carrying `previous` while it is told. Never counts as activity. */
  get(id: SandboxId): Promise<SandboxView>;
  list(query: ListQuery): Promise<{ readonly items: readonly SandboxView[]; readonly nextCursor: string | null }>;
  /** What happened to a sandbox, oldest first. Rejects with `sandbox_not_found` where nothing is known. */
  events(id: SandboxId): Promise<readonly HistoryEntry[]>;
  /** What its container said last, also of one that ended. Rejects with `sandbox_not_found` where nothing is known. */
  logs(id: SandboxId): Promise<LogsView>;
  status(): Promise<StatusView>;
  /** This replica's readiness, and each dependency as it is now. */
  readiness(): Promise<ReadinessView>;
}

export interface AcquireRequest {
  readonly userId: string;
  readonly threadId: string;
  readonly profile?: string;
  /** Milliseconds; 0: do not wait. */
  readonly waitMs?: number;
}

export interface Caller {
  /** Aborts when the client has hung up. */
  readonly gone: AbortSignal;
}

export type AcquireOutcome =
  | {
      readonly kind: 'ready';
      readonly sandbox: SandboxView;
      readonly hold: HoldId;
      readonly origin: Origin;
      readonly previous: Previous | null;
    }
  | { readonly kind: 'starting'; readonly sandbox: SandboxView; readonly retryAfterMs: number };

export interface ListQuery {
  readonly userId?: string;
  readonly threadId?: string;
  readonly state?: ShownState;
  readonly profile?: string;
  readonly limit: number;
  readonly cursor?: string;
}

export interface SandboxView {
  readonly id: SandboxId;
  readonly profile: string | null;
  readonly userId: string | null;
  readonly threadId: string | null;
  readonly url: string | null;
  readonly state: ShownState;
  readonly holds: number;
  readonly owner: OwnerId;
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly warmUntil: number | null;
}

export interface DependencyView {
  readonly ok: boolean;
  readonly message: string | null;
}

export interface ReadinessView {
  readonly ready: boolean;
  /** Why it is not ready; null when it is. */
  readonly because: string | null;
  readonly dependencies: {
    readonly store: DependencyView;
    readonly engine: DependencyView;
    readonly images: DependencyView;
  };
}

export interface StatusView extends ReadinessView {
  readonly owner: OwnerId;
  readonly deployment: string;
  readonly version: string;
  readonly store: 'memory' | 'redis';
  readonly sandboxes: Readonly<Record<ShownState, number>>;
  readonly capacity: { readonly max: number; readonly used: number; readonly waiting: number };
  readonly spares: Readonly<Record<string, { readonly ready: number; readonly wanted: number }>>;
}
