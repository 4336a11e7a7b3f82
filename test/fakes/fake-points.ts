/** A named moment of a call: before its effect, or after it and before its reply. */
export type When = 'before' | 'after';

/** A call that was stopped at a point. */
export interface Held {
  /** Resolves once a call stands at the point. */
  readonly reached: Promise<void>;
  /** Lets it go on; a call that comes later passes. */
  release(): void;
}

interface Point {
  readonly method: string;
  readonly when: When;
  readonly act: () => Promise<void>;
}

/**
 * Where a test stops calls, makes them fail or loses their replies. Each point is for one call and is used in the
 * order in which the points were set.
 */
export class FakePoints<Method extends string> {
  readonly #points: Point[] = [];
  readonly #broken = new Map<string, () => Error>();
  readonly #counts = new Map<string, number>();

  hold(method: Method, when: When = 'before'): Held {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    this.#points.push({
      method,
      when,
      act: () => {
        reached.resolve();
        return released.promise;
      },
    });
    return { reached: reached.promise, release: released.resolve };
  }

  /** The next call rejects: `before` has no effect, `after` has had its effect (a lost reply). */
  failNext(method: Method, error: Error, when: When = 'before'): void {
    this.#points.push({ method, when, act: () => Promise.reject(error) });
  }

  /** Every call rejects, without effect, until `repair`. */
  break(method: Method, error: () => Error): void {
    this.#broken.set(method, error);
  }

  repair(method: Method): void {
    this.#broken.delete(method);
  }

  /** How many calls were begun. */
  count(method: Method): number {
    return this.#counts.get(method) ?? 0;
  }

  /** Runs one call. `effect` is applied at once and as a whole. */
  async run<T>(method: Method, effect: () => T): Promise<T> {
    this.#counts.set(method, this.count(method) + 1);
    await this.#pass(method, 'before');
    const broken = this.#broken.get(method);
    if (broken !== undefined) throw broken();
    const result = effect();
    if (result instanceof Promise) result.catch(() => undefined); // whose reply is lost may fail unheard
    await this.#pass(method, 'after');
    return result;
  }

  async #pass(method: string, when: When): Promise<void> {
    const at = this.#points.findIndex((point) => point.method === method && point.when === when);
    const [point] = at < 0 ? [] : this.#points.splice(at, 1);
    await point?.act();
  }
}
