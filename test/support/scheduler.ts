import type { Clock } from '../../src/domain/timing.ts';

/** Where a thread waits: before a call, or in a pause. */
interface Stop {
  readonly kind: 'call' | 'pause';
  readonly label: string;
  /** True for what a client may do or leave: a thread of its own, without which a run may end. */
  readonly optional: boolean;
  readonly go: () => void;
}

/** One line of work. A call that starts a second line (a removal in the background) makes a second thread. */
export interface Thread {
  readonly id: number;
  /** What it is part of: the operation and its replica, or a client. */
  readonly actor: string;
  /** Null: a client's, which no crash of a replica touches. */
  readonly replica: number | null;
  /** Null while it runs and once it has ended. */
  stop: Stop | null;
  /** In a pause: the number of the last change of the world that it may have seen. */
  seen: number;
  steps: number;
}

/**
 * Everything that runs between two steps runs in microtasks, and an immediate comes only after the last of them,
 * however many there are. So after this nothing moves until the next step is released.
 */
const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Makes every call a step that waits until it is released. Steps happen one at a time: the effect of one, then all that
 * follows from it until every thread waits again or has ended. What waits newly after a step was caused by it and
 * belongs to its thread, the last of several as its continuation.
 */
export class Scheduler {
  readonly threads: Thread[] = [];
  /** The thread whose step was released last. */
  current: Thread | null = null;
  /** From now on calls happen at once, and a pause moves the clock. */
  free = false;
  /** How often the world has changed. Counted by whoever can tell. */
  changes = 0;
  readonly #arrived: Stop[] = [];

  /** Begins a thread. `work` runs until its first step; it must not reject. */
  async begin(actor: string, replica: number | null, work: () => Promise<void>): Promise<void> {
    const thread: Thread = { id: this.threads.length, actor, replica, stop: null, seen: 0, steps: 0 };
    this.threads.push(thread);
    await this.#run(thread, () => void work());
  }

  /** One step: waits for its release, then has its effect. */
  step<T>(label: string, effect: () => T | Promise<T>, optional = false): Promise<T> {
    if (this.free) return Promise.resolve(effect());
    return this.#wait('call', label, optional).then(effect);
  }

  pause(ms: number): Promise<void> {
    return this.#wait('pause', `pause ${ms}`, false);
  }

  /** Releases what the thread waits at. Resolves when everything waits again. */
  async release(thread: Thread): Promise<void> {
    const { stop } = thread;
    if (stop === null) throw new Error(`thread ${thread.id} of ${thread.actor} does not wait`);
    thread.steps += 1;
    await this.#run(thread, stop.go);
  }

  /** Its threads never go on. */
  crash(replica: number): void {
    for (const thread of this.threads) if (thread.replica === replica) thread.stop = null;
  }

  /** Time has passed: every pause is over. */
  wake(): void {
    for (const thread of this.threads) thread.seen = -1;
  }

  /** A thread in a pause looks again only once there is something new to see. */
  canGoOn({ stop, seen }: Thread): boolean {
    return stop !== null && (stop.kind === 'call' || seen !== this.changes);
  }

  /** Resolves when whatever is under way without steps has come to an end. */
  settled(): Promise<void> {
    return quiet();
  }

  async #run(thread: Thread, go: () => void): Promise<void> {
    this.current = thread;
    thread.stop = null;
    this.#arrived.length = 0;
    go();
    await quiet();
    const own = this.#arrived.filter(({ optional }) => !optional);
    const last = own.at(-1) ?? null;
    for (const stop of this.#arrived) if (stop !== last) this.#fork(thread, stop);
    Object.assign(thread, { stop: last, seen: this.changes });
  }

  #fork({ actor, replica }: Thread, stop: Stop): void {
    const whose = stop.optional ? { actor: `client of ${actor}`, replica: null } : { actor, replica };
    this.threads.push({ id: this.threads.length, ...whose, stop, seen: this.changes, steps: 0 });
  }

  #wait(kind: Stop['kind'], label: string, optional: boolean): Promise<void> {
    return new Promise((go) => this.#arrived.push({ kind, label, optional, go }));
  }
}

/** The clock of a scheduler's world. It stands still between steps. */
export class SteppedClock implements Clock {
  readonly #scheduler: Scheduler;
  readonly #start: number;
  #now = 0;

  constructor(scheduler: Scheduler, start = 1_800_000_000_000) {
    this.#scheduler = scheduler;
    this.#start = start;
  }

  wall(): number {
    return this.#start + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  /** Ends when the scheduler lets it; the signal counts only at its beginning. */
  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    if (this.#scheduler.free) this.advance(ms);
    else await this.#scheduler.pause(ms);
  }
}
