import { hasCode } from '../domain/errors.ts';
import type { ContainerId, Fence, SandboxId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { Claim, LeaseStore } from '../leases/lease-store.ts';
import type { Teardown } from './teardown.ts';

export interface FailedStartsOptions {
  readonly store: Pick<LeaseStore, 'claim'>;
  readonly teardown: Teardown;
  readonly clock: Clock;
  readonly leaseMs: number;
}

interface FailedStart {
  readonly fence: Fence;
  readonly container: ContainerId | null;
  /** Since when the store has answered every pass, on the monotonic clock. */
  since: number | null;
}

/**
 * Starts that failed while the store was away, so that their clean-up could not be claimed. Once the store has answered
 * for half a lease (longer than any owner needs to write back what a store that went back has forgotten), what they
 * made is claimed and removed, if the record is still theirs.
 */
export class FailedStarts {
  readonly #options: FailedStartsOptions;
  readonly #starts = new Map<SandboxId, FailedStart>();

  constructor(options: FailedStartsOptions) {
    this.#options = options;
  }

  /** To be called for a start whose claim got no answer. */
  note(id: SandboxId, fence: Fence, container: ContainerId | null): void {
    this.#starts.set(id, { fence, container, since: null });
  }

  /** A pass in which the store did not answer. */
  interrupted(): void {
    for (const start of this.#starts.values()) start.since = null;
  }

  /** A pass in which it did. Rejects with `store_unavailable`. */
  async pass(): Promise<void> {
    const { teardown, clock, leaseMs } = this.#options;
    const now = clock.monotonic();
    for (const [id, start] of this.#starts) {
      start.since ??= now;
      if (now - start.since < leaseMs / 2) continue;
      const claim = await this.#claim(id, start);
      this.#starts.delete(id);
      if (claim !== 'refused') teardown.begin(claim, 'failed-start', 'kill');
    }
  }

  /** A record that cannot be read by now is cleared by a DELETE, together with what has the name. */
  async #claim(id: SandboxId, { fence, container }: FailedStart): Promise<Claim | 'refused'> {
    try {
      return await this.#options.store.claim(id, fence, { kind: 'failed-start', container });
    } catch (error) {
      if (hasCode(error, 'record_unreadable')) return 'refused';
      throw error;
    }
  }
}
