import type { ContainerId, OwnerId } from '../domain/ids.ts';
import { PREVIOUS_KEPT_MS } from '../domain/sandbox.ts';
import type { Spare } from './lease-store.ts';

/** What became of a spare that is not in the pool any more, and until when that is remembered. */
interface Taken {
  readonly by: 'start' | 'removal';
  readonly until: number;
}

/** The spares of one deployment. One that was taken out stays out for an hour, so that nobody adds it a second time. */
export class MemorySpares {
  readonly #waiting = new Map<ContainerId, Spare>();
  readonly #taken = new Map<ContainerId, Taken>();
  #tender: { readonly owner: OwnerId; readonly until: number } | null = null;

  get waiting(): readonly Spare[] {
    return [...this.#waiting.values()];
  }

  add(spare: Spare, now: number): void {
    this.#forgetOld(now);
    if (!this.#taken.has(spare.container)) this.#waiting.set(spare.container, spare);
  }

  /** The oldest one of this profile and spec; of equally old ones the first by container id. */
  claim(profile: string, spec: string, now: number): Spare | null {
    let first: Spare | null = null;
    for (const spare of this.#waiting.values()) {
      if (spare.profile !== profile || spare.spec !== spec) continue;
      if (first === null || isBefore(spare, first)) first = spare;
    }
    if (first !== null) this.#take(first.container, 'start', now);
    return first;
  }

  /** False: a start has claimed it. */
  retire(container: ContainerId, now: number): boolean {
    this.#forgetOld(now);
    if (this.#taken.get(container)?.by === 'start') return false;
    this.#take(container, 'removal', now);
    return true;
  }

  tend(owner: OwnerId, now: number, leaseMs: number): boolean {
    if (this.#tender !== null && this.#tender.owner !== owner && this.#tender.until > now) return false;
    this.#tender = { owner, until: now + leaseMs };
    return true;
  }

  leave(owner: OwnerId): void {
    if (this.#tender?.owner === owner) this.#tender = null;
  }

  #take(container: ContainerId, by: Taken['by'], now: number): void {
    this.#forgetOld(now);
    this.#waiting.delete(container);
    this.#taken.delete(container); // so that the oldest comes first
    this.#taken.set(container, { by, until: now + PREVIOUS_KEPT_MS });
  }

  #forgetOld(now: number): void {
    for (const [container, { until }] of this.#taken) {
      if (until > now) break;
      this.#taken.delete(container);
    }
  }
}

function isBefore(a: Spare, b: Spare): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.container < b.container);
}
