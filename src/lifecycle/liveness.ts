import pLimit from 'p-limit';
import type { Container } from '../domain/container.ts';
import { BrokerError, codeOf, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { ContainerId, SandboxId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { ContainerChange, ContainerRuntime } from '../runtime/container-runtime.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Endings } from './endings.ts';
import type { TrackedLeases } from './tracked.ts';

export interface LivenessOptions {
  readonly runtime: Pick<ContainerRuntime, 'watch' | 'list' | 'look'>;
  readonly tracked: TrackedLeases;
  readonly endings: Endings;
  readonly tasks: BackgroundTasks;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** How many ends are looked at at a time: all containers of an engine may have ended at once. */
const PARALLEL_ENDS = 8;
/** Between the looks at one; each is twice as long as the one before. */
const END_PAUSE_MS = { first: 50, last: 1_600 };

/**
 * Which containers run, known from the engine's events, so that a re-acquire need not ask. A list closes the gap
 * whenever the stream is opened; while there is no stream, nothing is known. Whatever an event says of a container,
 * what was known of it is forgotten first.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  /** Where each container answers that runs under its sandbox's name. */
  readonly #running = new Map<ContainerId, string>();
  /** The number of each container's last event. */
  readonly #lastEvent = new Map<ContainerId, number>();
  readonly #exitCodes = new Map<ContainerId, number>();
  readonly #ends = pLimit(PARALLEL_ENDS);
  #events = 0;
  /** How many lists and looks are under way: while there are any, no container's last event is forgotten. */
  #asking = 0;
  #current = false;
  #broken = new AbortController();

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** True while events are being told and the gap before them is closed. */
  get current(): boolean {
    return this.#current;
  }

  /** Where the container answers, if it is known to run under its own name; null: look. */
  urlOf(container: ContainerId): string | null {
    return this.#current ? (this.#running.get(container) ?? null) : null;
  }

  /**
   * Follows the engine until the signal aborts. Rejects when the stream breaks, or the gap before it cannot be closed:
   * to be called again.
   */
  async follow(stopping: AbortSignal): Promise<void> {
    this.#forgetAll();
    const broken = new AbortController();
    this.#broken = broken;
    const signal = AbortSignal.any([stopping, broken.signal]);
    const watcher = {
      opened: () => void this.#catchUp(broken),
      changed: (change: ContainerChange) => this.#changed(change),
    };
    try {
      await this.#options.runtime.watch(watcher, signal);
      if (!stopping.aborted) throw broken.signal.reason;
    } finally {
      broken.abort(); // whatever is still being asked for this stream is of no use to the next one
      this.#forgetAll();
    }
  }

  /** A list that was asked for after `asOf` events. One that contradicts what is known means that the stream is dead. */
  compare(containers: readonly Container[], asOf: number): void {
    if (!this.#current) return;
    const seen = new Map(containers.map((container) => [container.id, urlOf(container)]));
    for (const [container, url] of this.#running) {
      if ((this.#lastEvent.get(container) ?? 0) > asOf || seen.get(container) === url) continue;
      this.#broken.abort(
        new BrokerError(
          'runtime_unavailable',
          "the container engine's events are missing something; following them anew",
        ),
      );
      return;
    }
    if (this.#asking > 0) return;
    for (const [container, event] of this.#lastEvent) {
      if (event <= asOf && !seen.has(container)) this.#lastEvent.delete(container);
    }
  }

  /** How many events were told so far. */
  get events(): number {
    return this.#events;
  }

  async #catchUp(stream: AbortController): Promise<void> {
    const { runtime, tracked, clock } = this.#options;
    try {
      const asOf = this.#events;
      const containers = await this.#ask(runtime.list());
      if (stream.signal.aborted) return;
      for (const container of containers) this.#note(container, asOf);
      this.#current = true;
      for (const { record } of tracked.all(clock.monotonic())) {
        const { container, state } = record;
        if (state === 'ready' && container !== null && !this.#running.has(container)) this.#ended(container, null);
      }
    } catch (error) {
      stream.abort(error);
    }
  }

  async #ask<T>(question: Promise<T>): Promise<T> {
    this.#asking += 1;
    try {
      return await question;
    } finally {
      this.#asking -= 1;
    }
  }

  #changed({ container, kind, exitCode }: ContainerChange): void {
    this.#events += 1;
    this.#lastEvent.set(container, this.#events);
    this.#running.delete(container);
    if (kind === 'started' || kind === 'renamed') this.#options.tasks.add(this.#look(container));
    if (kind === 'ended' || kind === 'removed') this.#ended(container, exitCode);
    if (kind === 'removed') {
      if (this.#asking === 0) this.#lastEvent.delete(container);
      this.#exitCodes.delete(container);
    }
  }

  /** An event says neither the port nor, after a rename, whether it runs. */
  async #look(container: ContainerId): Promise<void> {
    const asOf = this.#events;
    const { signal } = this.#broken;
    const seen = await this.#ask(this.#options.runtime.look({ container }));
    if (seen.kind === 'running' && !signal.aborted) this.#note(seen.container, asOf);
  }

  /** Holds only if nothing happened to the container since `asOf`. */
  #note(container: Container, asOf: number): void {
    const url = urlOf(container);
    if (url !== null && (this.#lastEvent.get(container.id) ?? 0) <= asOf) this.#running.set(container.id, url);
  }

  #ended(container: ContainerId, told: number | null): void {
    const { tracked, tasks, emit } = this.#options;
    const exitCode = told ?? this.#exitCodes.get(container) ?? null;
    if (exitCode !== null) this.#exitCodes.set(container, exitCode);
    const id = tracked.sandboxOf(container);
    if (id === null) return;
    tasks.add(
      this.#ends(() => this.#noteEnd(id, container, exitCode)).catch((error: unknown) => {
        const code = codeOf(error);
        emit({ type: 'loop-failed', loop: 'liveness', code, message: messageOf(error), again: false });
      }),
    );
  }

  /** An engine tells of an end a moment before its list shows it. */
  async #noteEnd(id: SandboxId, container: ContainerId, exitCode: number | null): Promise<void> {
    const { endings, clock } = this.#options;
    for (let pauseMs = END_PAUSE_MS.first; pauseMs <= END_PAUSE_MS.last; pauseMs *= 2) {
      if (await endings.note(id, container, exitCode)) return;
      await clock.pause(pauseMs);
    }
    await endings.note(id, container, exitCode);
  }

  #forgetAll(): void {
    this.#current = false;
    this.#running.clear();
    this.#lastEvent.clear();
    this.#exitCodes.clear();
  }
}

/** Null for one that does not run under its sandbox's name, or has no address yet. */
function urlOf({ state, role, url }: Container): string | null {
  return state === 'running' && role.kind === 'sandbox' ? url : null;
}
