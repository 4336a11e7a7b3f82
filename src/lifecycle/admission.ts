import type { Clock, Random } from '../domain/timing.ts';
import type { LeaseStore, TakeReply, TakeRequest } from '../leases/lease-store.ts';
import type { Eviction } from './eviction.ts';
import { capacityExhausted } from './handout.ts';

export interface AdmissionOptions {
  readonly store: Pick<LeaseStore, 'take' | 'read'>;
  readonly eviction: Eviction;
  readonly clock: Clock;
  readonly random: Random;
  /** 0 for no limit. */
  readonly limits: { readonly max: number; readonly perUser: number };
  /** How long a caller waits for a slot, in milliseconds; 0: not at all. */
  readonly waitTimeoutMs: number;
}

/** What the store gave, and when it was asked: monotonic milliseconds. */
interface Asked<Reply> {
  readonly reply: Reply;
  readonly sentAt: number;
}

type Admitted = Exclude<TakeReply, { kind: 'full' }>;
type Full = Extract<TakeReply, { kind: 'full' }>;

/** One caller in a line, woken when it stands at its head. */
interface Place {
  readonly atHead: PromiseWithResolvers<void>;
}

/** The head of a line asks again after this, and up to as much again, so that replicas do not ask in step. */
const ASK_AGAIN_MS = 250;
const FULL_RETRY_MS = 5_000;
const FLEET = 'fleet';
const lineOf = (userId: string): string => `user:${userId}`;

/**
 * Takes leases within the limits. At a limit the sandbox that has been unheld longest makes room; while there is none,
 * callers wait in line, first come first served within this replica: one line for the fleet's limit and one for each
 * user's, so that nobody waits for another user's sandboxes. Only the head of a line asks the store. A slot that frees
 * anywhere is found by it; nobody who came later takes it in this replica.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #lines = new Map<string, Place[]>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** How many callers wait. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.length, 0);
  }

  /**
   * As the store's `take`, with patience. Rejects with `capacity_exhausted` or `user_capacity_exhausted` when the wait
   * is over or nobody waits any more, and with what the store says.
   */
  async take(request: TakeRequest, gaveUp: AbortSignal): Promise<Asked<Admitted>> {
    const { clock, waitTimeoutMs } = this.#options;
    const until = clock.monotonic() + waitTimeoutMs;
    const behind = await this.#behindOthers(request);
    if (behind !== null) return this.#inLine(request, behind, until, gaveUp);
    const { reply, sentAt } = await this.#attempt(request);
    return reply.kind === 'full' ? this.#inLine(request, reply, until, gaveUp) : { reply, sentAt };
  }

  /** For a new sandbox while others wait for room: they were here first. Null: it need not wait for anybody. */
  async #behindOthers({ id, identity }: TakeRequest): Promise<Full | null> {
    const scope = this.#lines.has(lineOf(identity.userId)) ? 'user' : this.#lines.has(FLEET) ? 'fleet' : null;
    if (scope === null) return null;
    const seen = await this.#options.store.read(id);
    const isNew = seen.kind === 'absent' || (seen.kind === 'record' && seen.record.state === 'gone');
    return isNew ? { kind: 'full', scope } : null;
  }

  /** Takes; at a limit once more, after what makes room has gone. */
  async #attempt(request: TakeRequest): Promise<Asked<TakeReply>> {
    const asked = await this.#ask(request);
    if (asked.reply.kind !== 'full') return asked;
    const userId = asked.reply.scope === 'user' ? request.identity.userId : null;
    return (await this.#options.eviction.makeRoom(userId)) ? this.#ask(request) : asked;
  }

  async #ask(request: TakeRequest): Promise<Asked<TakeReply>> {
    const sentAt = this.#options.clock.monotonic();
    return { reply: await this.#options.store.take(request), sentAt };
  }

  async #inLine(request: TakeRequest, first: Full, until: number, gaveUp: AbortSignal): Promise<Asked<Admitted>> {
    const { clock, random } = this.#options;
    const left = (): number => until - clock.monotonic();
    const key = first.scope === 'user' ? lineOf(request.identity.userId) : FLEET;
    const place: Place = { atHead: Promise.withResolvers() };
    const line = this.#lines.get(key) ?? [];
    this.#lines.set(key, line);
    line.push(place);
    let full = first;
    try {
      if (line[0] !== place) await this.#until(place.atHead.promise, left(), gaveUp);
      while (left() > 0 && !gaveUp.aborted && line[0] === place) {
        const { reply, sentAt } = await this.#attempt(request);
        if (reply.kind !== 'full') return { reply, sentAt };
        full = reply;
        await clock.pause(Math.min(ASK_AGAIN_MS * (1 + random()), left()), gaveUp);
      }
      throw this.#exhausted(full);
    } finally {
      line.splice(line.indexOf(place), 1);
      line[0]?.atHead.resolve();
      if (line.length === 0) this.#lines.delete(key);
    }
  }

  async #until(turn: Promise<void>, ms: number, gaveUp: AbortSignal): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([gaveUp, over.signal]);
    await Promise.race([turn, this.#options.clock.pause(ms, signal)]);
    over.abort();
  }

  #exhausted({ scope }: Full) {
    const { max, perUser } = this.#options.limits;
    return capacityExhausted(scope, scope === 'fleet' ? max : perUser, FULL_RETRY_MS);
  }
}
