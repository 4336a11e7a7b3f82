import type { ContainerId, Fence, SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';

/** A lease that this replica believes to be its own. */
export interface Tracked {
  /** As it was when it was given or taken last; the store may know a later state. */
  readonly record: LeaseRecord;
  /** Monotonic milliseconds at which the call that last confirmed it was sent. */
  readonly confirmedAt: number;
  /** True for what this replica started or handed out, false for what it merely adopted. */
  readonly handedOut: boolean;
}

/**
 * What this replica remembers of its own leases. A lease confirmed longer ago than its duration is nobody's to act on
 * any more: a peer may own it by now.
 */
export class TrackedLeases {
  readonly #leaseMs: number;
  readonly #leases = new Map<SandboxId, Tracked>();
  readonly #byContainer = new Map<ContainerId, SandboxId>();

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  get size(): number {
    return this.#leases.size;
  }

  /** Notes a lease that a store call sent at `sentAt` has just given to this replica. */
  remember(record: LeaseRecord, sentAt: number, handedOut: boolean): void {
    const known = this.#leases.get(record.id);
    if (known !== undefined && known.record.fence > record.fence) return;
    this.#delete(record.id);
    if (record.container !== null) this.#byContainer.set(record.container, record.id);
    this.#leases.set(record.id, {
      record,
      confirmedAt: sentAt,
      handedOut: handedOut || (known?.handedOut === true && known.record.container === record.container),
    });
  }

  /** The renewal sent at `sentAt` succeeded. Nothing if the lease was taken anew meanwhile. */
  renewed(id: SandboxId, fence: Fence, sentAt: number): void {
    const known = this.#leases.get(id);
    if (known?.record.fence === fence)
      this.#leases.set(id, { ...known, confirmedAt: Math.max(known.confirmedAt, sentAt) });
  }

  /** Forgets this very lease; one taken since, under another fence, stays. True if it was there. */
  forget(id: SandboxId, fence: Fence): boolean {
    return this.#leases.get(id)?.record.fence === fence && this.#delete(id);
  }

  /** Whose container it is, among the leases remembered; null: none's. */
  sandboxOf(container: ContainerId): SandboxId | null {
    return this.#byContainer.get(container) ?? null;
  }

  /** The lease as remembered at `now`, if it may be acted on. */
  current(id: SandboxId, now: number): Tracked | null {
    const known = this.#leases.get(id);
    return known !== undefined && this.#isCurrent(known, now) ? known : null;
  }

  /** All leases that may be acted on at `now`. The others are forgotten for good. */
  all(now: number): Tracked[] {
    const current: Tracked[] = [];
    for (const [id, known] of this.#leases) {
      if (this.#isCurrent(known, now)) current.push(known);
      else this.#delete(id);
    }
    return current;
  }

  #delete(id: SandboxId): boolean {
    const container = this.#leases.get(id)?.record.container ?? null;
    if (container !== null && this.#byContainer.get(container) === id) this.#byContainer.delete(container);
    return this.#leases.delete(id);
  }

  #isCurrent(lease: Tracked, now: number): boolean {
    return now - lease.confirmedAt < this.#leaseMs;
  }
}
