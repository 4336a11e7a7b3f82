import { type Meeting, type Option, Run, type RunOptions } from './run.ts';

/** Where a schedule leaves the one that comes by itself: the choices up to there, the last one first. */
interface Choice {
  readonly token: string;
  readonly before: Choice | null;
}

interface Todo {
  readonly choice: Choice | null;
  readonly preemptions: number;
  readonly fault: boolean;
}

export interface Bounds {
  readonly preemptions: number;
  /** How many faults: none, or one at each step. */
  readonly faults: 0 | 1;
}

export interface Violation {
  readonly meeting: Meeting;
  readonly schedule: string;
  readonly what: string;
}

/**
 * All schedules of one meeting within bounds, in the order of their preemptions, of equals those without a fault first.
 * A schedule is run from its beginning; where it comes upon a state that an earlier one was in, with the same thread
 * about to go on and no fewer preemptions left, it is cut short, since all that can follow was searched from there.
 */
export class Search {
  readonly meeting: Meeting;
  schedules = 0;
  /** Of these, how many were cut short. */
  cut = 0;
  readonly #options: RunOptions;
  readonly #bounds: Bounds;
  readonly #todo: Todo[][];
  readonly #known = [new Map<number, number>(), new Map<number, number>()] as const;

  constructor(meeting: Meeting, bounds: Bounds, options: RunOptions = {}) {
    this.meeting = meeting;
    this.#bounds = bounds;
    this.#options = options;
    this.#todo = Array.from({ length: (bounds.preemptions + 1) * (bounds.faults + 1) }, () => []);
    this.#plan({ choice: null, preemptions: 0, fault: false });
  }

  get done(): boolean {
    return this.#todo.every(({ length }) => length === 0);
  }

  /** Runs the next schedule. */
  async next(): Promise<Violation | null> {
    const todo = this.#todo.find(({ length }) => length > 0)?.pop();
    if (todo === undefined) return null;
    this.schedules += 1;
    const run = await Run.begin(this.meeting, this.#options);
    let choice: Choice | null = null;
    for (const token of tokensOf(todo.choice)) {
      await follow(run, token);
      choice = { token, before: choice };
    }
    for (;;) {
      const [first, ...others] = run.threads();
      if (run.violation !== null) break;
      if (this.#wasHere(run, todo)) {
        this.cut += 1;
        return null;
      }
      for (const { token, preemptions } of others) {
        this.#plan({
          choice: { token, before: choice },
          preemptions: todo.preemptions + preemptions,
          fault: todo.fault,
        });
      }
      for (const { token } of todo.fault || this.#bounds.faults === 0 ? [] : run.faults()) {
        this.#plan({ choice: { token, before: choice }, preemptions: todo.preemptions, fault: true });
      }
      if (first === undefined) break;
      await run.take(first);
      choice = { token: first.token, before: choice };
    }
    await run.finish();
    if (run.violation === null) return null;
    return { meeting: this.meeting, schedule: tokensOf(choice).join('.'), what: run.violation };
  }

  #wasHere(run: Run, { preemptions, fault }: Todo): boolean {
    const states = this.#known[fault ? 1 : 0];
    const here = run.fingerprint(!fault && this.#bounds.faults > 0);
    if ((states.get(here) ?? Number.POSITIVE_INFINITY) <= preemptions) return true;
    states.set(here, preemptions);
    return false;
  }

  #plan(todo: Todo): void {
    const { preemptions, faults } = this.#bounds;
    if (todo.preemptions > preemptions) return;
    this.#todo[todo.preemptions * (faults + 1) + (todo.fault ? 1 : 0)]!.push(todo);
  }
}

/** The choices in their order. */
function tokensOf(last: Choice | null): string[] {
  const tokens: string[] = [];
  for (let choice = last; choice !== null; choice = choice.before) tokens.push(choice.token);
  return tokens.reverse();
}

async function follow(run: Run, token: string): Promise<void> {
  const same = (known: Option): boolean => known.token === token;
  const option = run.threads().find(same) ?? run.faults().find(same);
  if (option === undefined) throw new Error(`a schedule cannot be repeated: there is no choice ${token}`);
  await run.take(option);
}

/** Runs one schedule as it was printed, to be read. */
export async function replay(meeting: Meeting, schedule: string, options: RunOptions = {}): Promise<Run> {
  const run = await Run.begin(meeting, { ...options, trace: true });
  for (const token of schedule.split('.').filter((part) => part !== '')) await follow(run, token);
  for (let [first] = run.threads(); first !== undefined; [first] = run.threads()) await run.take(first);
  await run.finish();
  return run;
}
