import { hasCode } from '../domain/errors.ts';
import type { SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Claim, LeaseStore } from '../leases/lease-store.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Teardown } from './teardown.ts';

export interface EvictionOptions {
  readonly store: Pick<LeaseStore, 'unheld' | 'claim'>;
  readonly teardown: Teardown;
  readonly tasks: BackgroundTasks;
}

export interface Room {
  readonly made: boolean;
  /** Until the next sandbox will be unheld, if no hold is renewed or ends early; null: not known. */
  readonly nextMs: number | null;
}

/** How many are looked at: more than are picked at the same time. */
const CANDIDATES = 100;
/** How many removals may fail before the caller is told that there is no room. */
const MOST_FAILURES = 3;

/** Makes room at a limit by removing a sandbox that nobody holds. */
export class Eviction {
  readonly #options: EvictionOptions;
  /** What this replica is removing already, for somebody else who waits. */
  readonly #picked = new Set<SandboxId>();

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  /**
   * Removes the sandbox that has been unheld longest, whoever owns it; of one user's only, if `userId` is given. Made
   * once it is gone and its slot is free: the engine has no room before. A held one never goes: the claim is judged by
   * the store. A removal goes on whether or not somebody waits for it. Rejects with `store_unavailable`.
   */
  async makeRoom(userId: string | null): Promise<Room> {
    const { teardown, tasks } = this.#options;
    const { records, nextAt, now } = await this.#options.store.unheld(userId, CANDIDATES);
    const nextMs = nextAt === null ? null : nextAt - now;
    let failures = 0;
    for (const record of records) {
      if (this.#picked.has(record.id)) continue;
      this.#picked.add(record.id);
      try {
        const claim = await this.#claim(record);
        if (claim === 'refused') continue;
        if ((await tasks.add(teardown.run(claim, 'capacity'))) === 'removed') return { made: true, nextMs };
        failures += 1;
        if (failures === MOST_FAILURES) break;
      } finally {
        this.#picked.delete(record.id);
      }
    }
    return { made: false, nextMs };
  }

  /** One whose record cannot be read by now is none that this replica may remove. */
  async #claim({ id, fence }: LeaseRecord): Promise<Claim | 'refused'> {
    try {
      return await this.#options.store.claim(id, fence, { kind: 'capacity' });
    } catch (error) {
      if (hasCode(error, 'record_unreadable')) return 'refused';
      throw error;
    }
  }
}
