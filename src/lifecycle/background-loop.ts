import { codeOf, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { Clock, Random } from '../domain/timing.ts';

export interface LoopOptions {
  readonly name: string;
  /** From the end of one pass to the beginning of the next. */
  readonly intervalMs: number;
  /** `at once`, or after a random part of the interval, so that replicas started together do not march in step. */
  readonly first: 'at once' | 'jittered';
  /** From the end of a pass that failed to the next one, where that should be sooner. */
  readonly retryMs?: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: Emit;
  /** One pass. Its errors are reported and end nothing. The signal aborts when the loop is stopped. */
  readonly pass: (stopping: AbortSignal) => Promise<void>;
}

/**
 * The one thing in the broker that does something again and again. A pass never overlaps another of its loop, an
 * error in one never ends the loop, and stopping waits for the pass under way.
 */
export class BackgroundLoop {
  readonly #options: LoopOptions;
  readonly #stopping = new AbortController();
  #wake = new AbortController();
  #woken = false;
  #running: Promise<void> | null = null;
  #lastFailure: string | null = null;
  /** When the next pass should begin. */
  #due: number | null = null;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Begins. Once only; later calls do nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the present pause, or lets the next one be left out if a pass is under way. */
  wake(): void {
    this.#woken = true;
    this.#wake.abort();
  }

  /**
   * Ends the loop: no further pass begins. Resolves when the pass under way has ended or `withinMs` are over; true in
   * the first case. May be called again.
   */
  async stop(withinMs: number): Promise<boolean> {
    this.#stopping.abort();
    this.wake();
    if (this.#running === null) return true;
    const ended = this.#running.then(() => true);
    const late = new AbortController();
    const expired = this.#options.clock.pause(withinMs, late.signal).then(() => false);
    const inTime = await Promise.race([ended, expired]);
    late.abort();
    return inTime;
  }

  async #run(): Promise<void> {
    const { intervalMs, retryMs = intervalMs, first, random } = this.#options;
    if (first === 'jittered') await this.#pause(random() * intervalMs);
    while (!this.#stopping.signal.aborted) {
      const succeeded = await this.#pass();
      if (!this.#stopping.signal.aborted) await this.#pause(succeeded ? intervalMs : retryMs);
    }
  }

  async #pass(): Promise<boolean> {
    const { name, intervalMs, clock, emit, pass } = this.#options;
    const began = clock.monotonic();
    const lagMs = Math.max(0, began - (this.#due ?? began));
    try {
      await pass(this.#stopping.signal);
      emit({ type: 'loop-pass', loop: name, intervalMs, durationMs: clock.monotonic() - began, lagMs });
      if (this.#lastFailure !== null) emit({ type: 'loop-recovered', loop: name });
      this.#lastFailure = null;
      return true;
    } catch (error) {
      const code = codeOf(error);
      const message = messageOf(error);
      emit({ type: 'loop-failed', loop: name, code, message, again: message === this.#lastFailure });
      this.#lastFailure = message;
      return false;
    }
  }

  async #pause(ms: number): Promise<void> {
    this.#due = this.#options.clock.monotonic() + ms;
    if (!this.#woken && !this.#stopping.signal.aborted) {
      this.#wake = new AbortController();
      await this.#options.clock.pause(ms, this.#wake.signal);
    }
    this.#woken = false;
  }
}

/** Stops all of them at the same time. */
export async function stopAll(loops: readonly BackgroundLoop[], withinMs: number): Promise<void> {
  await Promise.all(loops.map((loop) => loop.stop(withinMs)));
}
