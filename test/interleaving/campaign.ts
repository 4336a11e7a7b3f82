import { describeMeeting } from './describe.ts';
import type { Meeting } from './run.ts';
import { type Limits, sample, seeded } from './sample.ts';
import { type Bounds, replay, Search, type Violation } from './search.ts';

/** A printed schedule or seed to repeat, instead of all that is to be run otherwise. */
export const REPLAYED = process.env.INTERLEAVING_SEED ?? null;

const ENOUGH_VIOLATIONS = 3;
const SAID_EVERY_MS = 10_000;

/** Counts what was run, and says so from time to time. */
export class Campaign {
  readonly #name: string;
  readonly #began = performance.now();
  readonly violations: Violation[] = [];
  schedules = 0;
  cut = 0;
  sampled = 0;
  steps = 0;
  #said = performance.now();

  constructor(name: string) {
    this.#name = name;
  }

  get elapsedMs(): number {
    return performance.now() - this.#began;
  }

  /** True once it makes no sense to look for more. */
  get over(): boolean {
    return this.violations.length >= ENOUGH_VIOLATIONS;
  }

  /** Goes on with a search for at most so long, or until it finds something. True: there is nothing more to be done. */
  async search(search: Search, withinMs: number): Promise<boolean> {
    const until = performance.now() + withinMs;
    const before = { schedules: search.schedules, cut: search.cut };
    let found = false;
    while (!search.done && !found && performance.now() < until) found = this.#note(await search.next());
    this.schedules += search.schedules - before.schedules;
    this.cut += search.cut - before.cut;
    this.#progress(describeMeeting(search.meeting));
    return search.done || found;
  }

  async sample(meeting: Meeting, random: () => number, limits: Limits): Promise<void> {
    const { steps, violation } = await sample(meeting, random, limits);
    this.sampled += 1;
    this.steps += steps;
    this.#note(violation);
    this.#progress(`${this.steps} steps`);
  }

  say(words: string): void {
    const seconds = (this.elapsedMs / 1000).toFixed(0);
    process.stdout.write(`${this.#name}, ${seconds} s: ${words}\n`);
    this.#said = performance.now();
  }

  summary(): string {
    const searched = `${this.schedules} schedules searched (${this.cut} of them cut short at a state known before)`;
    return `${searched}, ${this.sampled} sampled, ${this.violations.length} violations`;
  }

  /** What was found, each with its steps; empty: nothing. */
  async told(): Promise<string> {
    const all: string[] = [];
    for (const { meeting, schedule, what } of this.violations) {
      const name = `${describeMeeting(meeting)} ${schedule}`;
      const { trace } = await replay(meeting, schedule);
      all.push([what, ...trace.map((line) => `  ${line}`), `INTERLEAVING_SEED='${name}' replays it`].join('\n'));
    }
    return all.join('\n\n');
  }

  #note(violation: Violation | null): boolean {
    if (violation !== null) this.violations.push(violation);
    return violation !== null;
  }

  #progress(words: string): void {
    if (performance.now() - this.#said >= SAID_EVERY_MS) this.say(`${words}; ${this.summary()}`);
  }
}

export interface Plan {
  readonly bounds: Bounds;
  /** The same bounds, for what is sampled. */
  readonly limits: Limits;
  readonly withinMs: number;
}

/** Of the time, what goes to the search before the rest is sampled. */
const SEARCHED = 0.8;
const SHORTEST_TURN_MS = 20;

/**
 * All schedules of every meeting within bounds, in at most so long. The meetings take turns, so that each gets its share
 * of the time and what one does not need is the others'. What does not fit is sampled, within the same bounds, from
 * seeds that are printed.
 */
export async function searchAll(campaign: Campaign, meetings: readonly Meeting[], plan: Plan): Promise<void> {
  const { bounds, limits, withinMs } = plan;
  const left = (): number => withinMs * SEARCHED - campaign.elapsedMs;
  let open = meetings.map((meeting, seed) => ({ seed, search: new Search(meeting, bounds) }));
  while (open.length > 0 && left() > 0 && !campaign.over) {
    const turn = Math.max(SHORTEST_TURN_MS, left() / open.length / 2);
    const unfinished: typeof open = [];
    for (const one of open) if (!(await campaign.search(one.search, Math.min(turn, left())))) unfinished.push(one);
    open = unfinished;
  }
  campaign.say(
    `${campaign.summary()}. Searched to the end: ${meetings.length - open.length} of ${meetings.length} meetings.`,
  );
  if (open.length === 0) return;
  for (const [index, { seed, search }] of open.entries()) {
    const random = seeded(seed);
    const until = performance.now() + (withinMs - campaign.elapsedMs) / (open.length - index);
    while (!campaign.over && performance.now() < until) await campaign.sample(search.meeting, random, limits);
  }
  campaign.say(`${campaign.summary()}. Sampled from the seeds ${rangesOf(open.map(({ seed }) => seed))}.`);
}

function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
