import { describeMeeting } from './describe.ts';
import { COMMON, OPERATION_NAMES } from './operations.ts';
import type { Meeting } from './run.ts';
import { OWNERS, SPARED, STARTS, type Start } from './scene.ts';

type Actor = Meeting['actors'][number];

const actorsOf = (operations: typeof OPERATION_NAMES): readonly Actor[] =>
  operations.flatMap((operation) => OWNERS.map((_, replica) => ({ operation, replica })));

export const ACTORS: readonly Actor[] = actorsOf(COMMON);

/** A replica runs the acquires of one id one after the other. */
export function mayMeet(actors: readonly Actor[]): boolean {
  return OWNERS.every(
    (_, replica) =>
      actors.filter((actor) => actor.operation.endsWith('acquire') && actor.replica === replica).length < 2,
  );
}

/** Starts in which the replicas are alike: what holds for one pair holds for the same pair with the replicas swapped. */
const ALIKE: ReadonlySet<Start> = new Set(['orphan', 'none', SPARED]);

/** Every pair of operations from every start. */
export function pairs(): Meeting[] {
  return pairsFrom(STARTS, ACTORS);
}

/** Every pair of operations that may meet a spare. */
export function sparedPairs(): Meeting[] {
  return pairsFrom([SPARED], actorsOf(OPERATION_NAMES));
}

function pairsFrom(starts: readonly Start[], among: readonly Actor[]): Meeting[] {
  const all: Meeting[] = [];
  const seen = new Set<string>();
  for (const start of starts) {
    among.forEach((first, index) => {
      for (const second of among.slice(index)) {
        const actors = [first, second];
        if (!mayMeet(actors)) continue;
        const mirrored = actors.map(({ operation, replica }) => ({ operation, replica: 1 - replica }));
        const same = [mirrored, mirrored.toReversed()].map((other) => describeMeeting({ start, actors: other }));
        if (ALIKE.has(start) && same.some((name) => seen.has(name))) continue;
        seen.add(describeMeeting({ start, actors }));
        all.push({ start, actors });
      }
    });
  }
  return all;
}
