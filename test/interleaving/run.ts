import { describeWorld } from './describe.ts';
import { type Fault, faultsOf } from './faults.ts';
import { begin, leave, type Operation } from './operations.ts';
import { quiet } from './quiet.ts';
import { type Mutation, Scene, type Start } from './scene.ts';

/** Which operations meet, and in what they begin. */
export interface Meeting {
  readonly start: Start;
  readonly actors: readonly { readonly operation: Operation; readonly replica: number }[];
}

/** What may be done next. */
export interface Option {
  readonly token: string;
  /** 1: a thread that could go on is left for another. */
  readonly preemptions: 0 | 1;
  readonly fault: Fault['kind'] | null;
  readonly words: string;
  readonly take: () => void | Promise<void>;
}

export interface RunOptions {
  readonly mutation?: Mutation | null;
  /** Keep what happened, to be read. */
  readonly trace?: boolean;
}

const MOST_JUMPS = 6;
const MOST_STEPS = 400;

/** One run of a meeting, decided step by step from outside. */
export class Run {
  readonly scene: Scene;
  readonly trace: string[] = [];
  readonly #tracing: boolean;
  #jumps = 0;
  #steps = 0;

  private constructor(scene: Scene, tracing: boolean) {
    this.scene = scene;
    this.#tracing = tracing;
  }

  static async begin({ start, actors }: Meeting, { mutation = null, trace = false }: RunOptions = {}): Promise<Run> {
    const explicit = actors.some(({ operation }) => operation === 'destroy');
    const scene = new Scene(start, { mutation, explicit });
    const run = new Run(scene, trace);
    for (const { operation, replica } of actors) await begin(scene, operation, scene.replicas[replica]!);
    for (const client of scene.judge.clients)
      await scene.scheduler.begin('the client', null, () => leave(scene, client));
    scene.scheduler.current = null;
    run.#note('begin');
    return run;
  }

  get violation(): string | null {
    return this.scene.judge.violation;
  }

  /**
   * The threads that can go on, the one that comes by itself first; empty: the run is at its end. When all that is left
   * waits for time to pass, time passes, and at last the callers' patience ends.
   */
  threads(): Option[] {
    const { scene } = this;
    const { scheduler } = scene;
    for (;;) {
      const able = scheduler.threads.filter((thread) => scheduler.canGoOn(thread));
      if (this.violation !== null) return [];
      if (able.some(({ stop }) => stop?.optional === false)) {
        const { current } = scheduler;
        const stays = current?.stop?.kind === 'call' && !current.stop.optional;
        const first = stays ? current : able.find(({ stop }) => stop?.optional === false);
        const ordered = [first!, ...able.filter((thread) => thread !== first)];
        return ordered.map((thread) => ({
          token: String(thread.id),
          preemptions: stays && thread !== current ? 1 : 0,
          fault: null,
          words: `${thread.actor}: ${thread.stop?.label}`,
          take: () => scheduler.release(thread),
        }));
      }
      if (scheduler.threads.every(({ stop }) => stop === null || stop.optional)) return [];
      this.#jump();
    }
  }

  faults(): Option[] {
    return faultsOf(this.scene).map(({ token, kind, words, happen }) => ({
      ...{ token, preemptions: 0, fault: kind, words },
      take: () => happen(this.scene),
    }));
  }

  async take(option: Option): Promise<void> {
    await option.take();
    this.scene.changed();
    this.#note(option.words);
    this.#steps += 1;
    if (this.#steps > MOST_STEPS) this.scene.judge.report('it does not come to an end');
  }

  /** Equal for two runs that can go on alike. */
  fingerprint(history: boolean): number {
    return this.scene.fingerprint(history) + this.#jumps;
  }

  /** Lets everything come to rest and looks at what is left. */
  async finish(): Promise<void> {
    if (this.violation !== null) return;
    await quiet(this.scene);
    this.#note('all is quiet');
  }

  #jump(): void {
    const { scene } = this;
    this.#jumps += 1;
    scene.passLease();
    if (this.#jumps > 1) scene.patience.abort();
    if (this.#jumps > MOST_JUMPS) scene.judge.report('somebody waits for ever');
    scene.scheduler.wake();
    scene.changed();
    this.#note('a lease goes by');
  }

  #note(words: string): void {
    if (this.#tracing) this.trace.push(`${words.padEnd(34)} ${describeWorld(this.scene)}`);
  }
}
