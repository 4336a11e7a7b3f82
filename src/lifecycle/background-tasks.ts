import type { Clock } from '../domain/timing.ts';

/** Work that nobody waits for now, but that shutdown has to wait for. Its errors are its own to report. */
export class BackgroundTasks {
  readonly #clock: Clock;
  readonly #open = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Keeps the task in view until it settles. Returns it, so that it may be awaited as well. */
  add<T>(task: Promise<T>): Promise<T> {
    const seen: Promise<unknown> = task.then(
      () => this.#open.delete(seen),
      () => this.#open.delete(seen),
    );
    this.#open.add(seen);
    return task;
  }

  /** Resolves when nothing is open any more (true), or after `withinMs` (false). */
  async drained(withinMs: number): Promise<boolean> {
    const late = new AbortController();
    const expired = this.#clock.pause(withinMs, late.signal);
    try {
      while (this.#open.size > 0) {
        const inTime = await Promise.race([Promise.all(this.#open).then(() => true), expired.then(() => false)]);
        if (!inTime) return false;
      }
      return true;
    } finally {
      late.abort();
    }
  }
}
