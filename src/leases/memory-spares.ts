import type { ContainerId } from '../domain/ids.ts';
import { PREVIOUS_KEPT_MS } from '../domain/sandbox.ts';
import type { Spare } from './lease-store.ts';

/** The spares of one deployment. One that was claimed stays out for an hour, so that nobody adds it a second time. */
export class MemorySpares {
  readonly #waiting = new Map<ContainerId, Spare>();
  readonly #claimed = new Map<ContainerId, number>();

  add(spare: Spare, now: number): void {
    this.#forgetOld(now);
    if (!this.#claimed.has(spare.container)) this.#waiting.set(spare.container, spare);
  }

  /** The oldest one of this profile and spec; of equally old ones the first by container id. */
  claim(profile: string, spec: string, now: number): Spare | null {
    this.#forgetOld(now);
    let first: Spare | null = null;
    for (const spare of this.#waiting.values()) {
      if (spare.profile !== profile || spare.spec !== spec) continue;
      if (first === null || isBefore(spare, first)) first = spare;
    }
    if (first === null) return null;
    this.#waiting.delete(first.container);
    this.#claimed.set(first.container, now + PREVIOUS_KEPT_MS);
    return first;
  }

  #forgetOld(now: number): void {
    for (const [container, until] of this.#claimed) {
      if (until > now) break;
      this.#claimed.delete(container);
    }
  }
}

function isBefore(a: Spare, b: Spare): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.container < b.container);
}
