import { ACTORS, mayMeet } from './meetings.ts';
import { type Meeting, type Option, Run, type RunOptions } from './run.ts';
import { STARTS } from './scene.ts';
import type { Violation } from './search.ts';

/** A small generator of random numbers that a seed decides (mulberry32). Uniform in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

const pick = <T>(random: () => number, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** Any three operations that may meet, from any start. */
export function tripleOf(random: () => number): Meeting {
  for (;;) {
    const actors = [pick(random, ACTORS), pick(random, ACTORS), pick(random, ACTORS)];
    if (mayMeet(actors)) return { start: pick(random, STARTS), actors };
  }
}

export interface Limits {
  /** Null: any number. */
  readonly preemptions: number | null;
  /** Of each kind; `all` bounds their sum. */
  readonly faults: { readonly [kind in NonNullable<Option['fault']>]: number } & { readonly all: number };
}

/** One fault of any kind, as in the search. */
export const ONE_FAULT: Limits['faults'] = { disaster: 1, expiry: 1, crash: 1, leaving: 1, all: 1 };
/** As many as the model of the protocol allows at once. */
export const SEVERAL_FAULTS: Limits['faults'] = { disaster: 1, expiry: 1, crash: 1, leaving: 2, all: 5 };

export interface Sampled {
  readonly steps: number;
  readonly schedule: string;
  readonly violation: Violation | null;
}

/** One random schedule, the same for the same seed. */
export async function sample(
  meeting: Meeting,
  random: () => number,
  { preemptions, faults }: Limits,
  options: RunOptions = {},
): Promise<Sampled> {
  const run = await Run.begin(meeting, options);
  const used = { disaster: 0, expiry: 0, crash: 0, leaving: 0, all: 0 };
  const schedule: string[] = [];
  const [switching, failing] = [random() * 0.5, random() * 0.15];
  let left = preemptions ?? Number.POSITIVE_INFINITY;
  for (;;) {
    const threads = run.threads();
    if (threads.length === 0) break;
    const possible =
      random() < failing
        ? run.faults().filter(({ fault }) => fault !== null && used[fault] < faults[fault] && used.all < faults.all)
        : [];
    const option = possible.length > 0 ? pick(random, possible) : nextThread(threads, random, switching, left);
    if (option.fault !== null) {
      used[option.fault] += 1;
      used.all += 1;
    }
    left -= option.preemptions;
    schedule.push(option.token);
    await run.take(option);
  }
  await run.finish();
  const what = run.violation;
  const told = { steps: schedule.length, schedule: schedule.join('.') };
  return { ...told, violation: what === null ? null : { meeting, schedule: told.schedule, what } };
}

function nextThread(threads: readonly Option[], random: () => number, switching: number, left: number): Option {
  const [first, ...others] = threads;
  const allowed = others.filter(({ preemptions }) => preemptions <= left);
  const mustStay = allowed.length === 0;
  const atWill = allowed.some(({ preemptions }) => preemptions === 0);
  if (mustStay || random() >= (atWill ? 0.5 : switching)) return first!;
  return pick(random, allowed);
}
