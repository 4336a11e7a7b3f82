import type { BrokerError } from '../../src/domain/errors.ts';
import type { HistoryEntry } from '../../src/domain/history.ts';
import { asOwnerId, asSandboxId, type HoldId, type SandboxId } from '../../src/domain/ids.ts';
import type {
  AcquireOutcome,
  AcquireRequest,
  Caller,
  ListQuery,
  ReadinessView,
  SandboxService,
  SandboxView,
  StatusView,
} from '../../src/service/api.ts';
import type { LogsView } from '../../src/service/history.ts';

export const SANDBOX_ID = asSandboxId('9f86d081884c7d659a2feaa0c55ad015');
export const HOLD_ID = 1796069125644731 as HoldId;

export const SANDBOX: SandboxView = {
  id: SANDBOX_ID,
  profile: 'default',
  userId: 'user-42',
  threadId: 'thread-7',
  url: 'http://127.0.0.1:49153',
  state: 'active',
  holds: 1,
  owner: asOwnerId('host:owner'),
  createdAt: 1_796_069_125_644,
  lastActiveAt: 1_796_069_126_000,
  warmUntil: null,
};

const OK = { ok: true, message: null };
export const READY: ReadinessView = {
  ready: true,
  because: null,
  dependencies: { store: OK, engine: OK, images: OK },
};

/** Says what it was told to say, and remembers what it was asked. Decides nothing. */
export class FakeService implements SandboxService {
  readonly asked: { call: string; args: unknown[] }[] = [];
  /** When set, every call rejects with it. */
  failure: BrokerError | Error | null = null;
  outcome: AcquireOutcome = { kind: 'ready', sandbox: SANDBOX, hold: HOLD_ID, origin: 'created', previous: null };
  destroyed: 'gone' | 'removing' = 'gone';
  ready: ReadinessView = READY;
  /** When set, an acquire waits for it, whatever the caller does. */
  gate: Promise<void> | null = null;
  caller: Caller | null = null;

  acquire(request: AcquireRequest, caller: Caller): Promise<AcquireOutcome> {
    this.caller = caller;
    return this.#answer('acquire', [request], () => this.outcome, this.gate);
  }
  keepalive(id: SandboxId, hold: HoldId): Promise<SandboxView> {
    return this.#answer('keepalive', [id, hold], () => SANDBOX);
  }
  release(id: SandboxId, hold: HoldId): Promise<SandboxView> {
    return this.#answer('release', [id, hold], () => ({ ...SANDBOX, state: 'warm', holds: 0, warmUntil: 1 }));
  }
  destroy(id: SandboxId): Promise<'gone' | 'removing'> {
    return this.#answer('destroy', [id], () => this.destroyed);
  }
  get(id: SandboxId): Promise<SandboxView> {
    return this.#answer('get', [id], () => SANDBOX);
  }
  list(query: ListQuery): Promise<{ items: readonly SandboxView[]; nextCursor: string | null }> {
    const unknown = { ...SANDBOX, profile: null, userId: null, threadId: null, url: null };
    return this.#answer('list', [query], () => ({ items: [SANDBOX, unknown], nextCursor: 'more' }));
  }
  events(id: SandboxId): Promise<readonly HistoryEntry[]> {
    const entry = { at: 1_796_069_125_644, event: 'held', owner: asOwnerId('host:owner'), reason: 'created' } as const;
    return this.#answer('events', [id], () => [{ ...entry, key: 'gateway', container: null }]);
  }
  logs(id: SandboxId): Promise<LogsView> {
    const ended = { reason: 'killed', exitCode: 137, endedAt: 1_796_069_125_644 };
    return this.#answer('logs', [id], () => ({ running: false, container: null, ...ended, logTail: 'bye' }));
  }
  status(): Promise<StatusView> {
    return this.#answer('status', [], () => ({
      ...this.ready,
      owner: asOwnerId('host:owner'),
      deployment: 'default',
      version: '1.2.3',
      store: 'memory',
      sandboxes: { starting: 0, active: 1, warm: 2, destroying: 0 },
      capacity: { max: 100, used: 3, waiting: 0 },
      spares: { default: { ready: 1, wanted: 2 } },
    }));
  }
  readiness(): Promise<ReadinessView> {
    return this.#answer('readiness', [], () => this.ready);
  }

  async #answer<T>(call: string, args: unknown[], result: () => T, gate: Promise<void> | null = null): Promise<T> {
    this.asked.push({ call, args });
    await gate;
    if (this.failure !== null) throw this.failure;
    return result();
  }
}
