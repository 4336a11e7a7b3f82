import type { SandboxId } from '../domain/ids.ts';
import type { Handout, Slow, Waiting } from './handout.ts';

/** One acquire in the queue of its id. */
export interface Turn {
  /** The handout, or why there is none; null when its caller had given up before its turn came. */
  readonly result: Promise<Handout | null>;
  /** What keeps it waiting, as soon as something slow does, in this acquire or in one before it. */
  readonly slow: Promise<Slow>;
  /** What was told of that last; null: nothing yet. */
  readonly latest: Slow | null;
  /** False while acquires before it are under way. */
  readonly begun: boolean;
}

interface Place extends Turn {
  begun: boolean;
  readonly report: (why: Slow) => void;
  latest: Slow | null;
}

/**
 * Runs the acquires of one id one after the other, so that twenty callers at once start one container, and each then
 * takes a hold of its own. The table holds only ids with an acquire under way.
 */
export class Turns {
  readonly #last = new Map<SandboxId, Place>();

  /** How many ids have an acquire under way. */
  get size(): number {
    return this.#last.size;
  }

  /** Queues an acquire. It is skipped if its caller has given up by the time its turn comes, and somebody else ran before. */
  enter(id: SandboxId, gaveUp: AbortSignal, work: (waiting: Waiting) => Promise<Handout>): Turn {
    const ahead = this.#last.get(id);
    const { promise: slow, resolve: report } = Promise.withResolvers<Slow>();
    const run = async (): Promise<Handout | null> => {
      await ahead?.result.catch(() => undefined);
      if (ahead !== undefined && gaveUp.aborted && place.latest !== null) return null;
      place.begun = true;
      return work({ gaveUp, slow: (why) => place.report(why) });
    };
    const place: Place = {
      result: run().finally(() => {
        if (this.#last.get(id) === place) this.#last.delete(id);
      }),
      slow,
      begun: false,
      latest: ahead?.latest ?? null,
      report: (why) => {
        place.latest = why;
        report(why);
      },
    };
    if (ahead !== undefined) {
      if (ahead.latest !== null) place.report(ahead.latest);
      else void ahead.slow.then(place.report);
    }
    this.#last.set(id, place);
    place.result.catch(() => undefined); // whoever waits for it sees the error; nobody may wait any more
    return place;
  }
}
