import type { Clock } from '../../src/domain/timing.ts';

interface Waiter {
  readonly due: number;
  readonly done: () => void;
}

/** Long enough for every promise that does not wait for the clock to settle. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock that a test moves. Nothing waits for real time. */
export class ManualClock implements Clock {
  #now = 0;
  readonly #start: number;
  readonly #waiters = new Set<Waiter>();

  constructor(start = 1_800_000_000_000) {
    this.#start = start;
  }

  wall(): number {
    return this.#start + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const waiter: Waiter = {
        due: this.#now + ms,
        done: () => {
          this.#waiters.delete(waiter);
          signal?.removeEventListener('abort', waiter.done);
          resolve();
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', waiter.done, { once: true });
    });
  }

  /** How many pauses are open. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Lets `ms` pass: each pause that is due ends at its time, and what follows from it happens before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const [next] = [...this.#waiters].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due);
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.due);
      next.done();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  /** Lets everything happen that needs no time. */
  settle(): Promise<void> {
    return settle();
  }
}
