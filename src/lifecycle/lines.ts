/** The line of those who wait for the fleet's limit; a user's line is known by the user's hash. */
export const FLEET = 'fleet';

/** One caller in a line. */
export interface Place {
  readonly isHead: boolean;
  /** Resolves when everybody before has left. */
  readonly atHead: Promise<void>;
  /** Aborts at the first ring after this call. To be called before the store is asked, so that no news is missed. */
  hear(): AbortSignal;
  /** Wakes the head of the line. */
  ring(): void;
  leave(): void;
}

interface Line {
  readonly places: Set<PromiseWithResolvers<void>>;
  bell: AbortController;
}

/** Who waits, in the order in which they came. A line is there as long as somebody stands in it. */
export class Lines {
  readonly #lines = new Map<string, Line>();

  get size(): number {
    let size = 0;
    for (const { places } of this.#lines.values()) size += places.size;
    return size;
  }

  has(key: string): boolean {
    return this.#lines.has(key);
  }

  /** Something has changed for a user, and so for the fleet; null: for anybody. */
  ring(user: string | null): void {
    if (user === null) for (const { bell } of this.#lines.values()) bell.abort();
    else for (const key of [FLEET, user]) this.#lines.get(key)?.bell.abort();
  }

  join(key: string): Place {
    const line: Line = this.#lines.get(key) ?? { places: new Set(), bell: new AbortController() };
    this.#lines.set(key, line);
    const turn = Promise.withResolvers<void>();
    const headOf = (): PromiseWithResolvers<void> | undefined => line.places.values().next().value;
    line.places.add(turn);
    headOf()?.resolve();
    return {
      get isHead() {
        return headOf() === turn;
      },
      atHead: turn.promise,
      hear: () => {
        line.bell = new AbortController();
        return line.bell.signal;
      },
      ring: () => line.bell.abort(),
      leave: () => {
        line.places.delete(turn);
        headOf()?.resolve();
        if (line.places.size === 0) this.#lines.delete(key);
      },
    };
  }
}
