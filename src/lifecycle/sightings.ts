import type { ContainerId } from '../domain/ids.ts';

/**
 * Why a container is being watched. `unowned`: it runs, and no record, or only a start that was cut short, knows it. `dead`: it does not run, and no
 * record knows it. `stray`: a verified record names another one. `condemned`: it has a condemned name, and no
 * removal of it is under way.
 */
export type Suspicion = 'unowned' | 'dead' | 'stray' | 'condemned';

/**
 * Since when each container has been seen in a state that, if it lasts, asks for something. On this replica's
 * monotonic clock: nobody else's clock or memory is trusted for it.
 */
export class Sightings {
  readonly #seen = new Map<ContainerId, { suspicion: Suspicion; since: number; pass: number }>();
  #pass = 0;

  get size(): number {
    return this.#seen.size;
  }

  /** Notes what one complete pass saw. A container that is not suspect any more, or is gone, is forgotten. */
  note(suspects: ReadonlyMap<ContainerId, Suspicion>, now: number): void {
    this.#pass += 1;
    for (const [container, suspicion] of suspects) {
      const known = this.#seen.get(container);
      const since = known?.suspicion === suspicion ? known.since : now;
      const pass = known?.suspicion === suspicion ? known.pass : this.#pass;
      this.#seen.set(container, { suspicion, since, pass });
    }
    for (const container of this.#seen.keys()) if (!suspects.has(container)) this.#seen.delete(container);
  }

  /** For how long, in milliseconds; null unless it was seen so in this pass and in an earlier one. */
  lasting(container: ContainerId, now: number): number | null {
    const known = this.#seen.get(container);
    return known === undefined || known.pass === this.#pass ? null : now - known.since;
  }

  /**
   * A pass did not see everything. Whether a container has an owner must be watched without a gap, so that wait
   * begins anew; the others are facts about two moments and are kept.
   */
  interrupted(): void {
    for (const [container, { suspicion }] of this.#seen) if (suspicion === 'unowned') this.#seen.delete(container);
  }
}
