import { BrokerError } from '../domain/errors.ts';
import { userHash } from '../domain/identity.ts';
import type { Clock, Random } from '../domain/timing.ts';
import type { LeaseStore, TakeReply, TakeRequest } from '../leases/lease-store.ts';
import type { Census } from './census.ts';
import type { Eviction, Room } from './eviction.ts';
import { capacityExhausted } from './handout.ts';
import { FLEET, Lines, type Place } from './lines.ts';

export interface AdmissionOptions {
  readonly store: Pick<LeaseStore, 'take' | 'listen'>;
  readonly eviction: Eviction;
  readonly census: Pick<Census, 'take'>;
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
  /** Of a refusal: until the next sandbox will be unheld; null: not known. */
  readonly nextMs: number | null;
}

type Counted = Exclude<TakeReply, { kind: 'uncounted' }>;
type Full = Extract<TakeReply, { kind: 'full' }>;
type Admitted = Exclude<Counted, Full>;

/** The head of a line asks again after about so long when it hears nothing: news may get lost, and holds run out. */
const ASK_AGAIN_MS = 2_000;
/** After news the heads of all replicas ask, each at a moment of its own within so long. */
const JITTER_MS = 25;
/** What `Retry-After` is made of. */
const RETRY_MS = { least: 1_000, unknown: 5_000, most: 30_000 };
/** The store began a new life before every try. */
const MOST_CENSUSES = 3;

/**
 * Takes leases within the limits. At a limit the sandbox that has been unheld longest makes room; while there is none,
 * callers wait in line, first come first served within this replica: one line for the fleet's limit and one for each
 * user's, so that nobody waits for another user's sandboxes. Only the head of a line asks the store, when it hears that
 * something has changed; nobody who came later takes a slot before it in this replica.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #lines = new Lines();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    options.store.listen((news, user) => {
      if (news !== 'spare-taken') this.#lines.ring(user);
    });
  }

  /** How many callers wait. */
  get waiting(): number {
    return this.#lines.size;
  }

  /**
   * As the store's `take`, with patience. Rejects with `capacity_exhausted` or `user_capacity_exhausted` when the wait
   * is over or nobody waits any more, with `runtime_unavailable` when nobody can tell what runs, and with what the store
   * says.
   */
  async take(request: TakeRequest, gaveUp: AbortSignal): Promise<Omit<Asked<Admitted>, 'nextMs'>> {
    const { clock, waitTimeoutMs } = this.#options;
    const until = clock.monotonic() + waitTimeoutMs;
    const behind = this.#before(request);
    let asked = await (behind === null ? this.#attempt(request, gaveUp) : this.#ask({ ...request, behind }));
    for (;;) {
      const { reply, sentAt, nextMs } = asked;
      if (reply.kind !== 'full') return { reply, sentAt };
      asked = await this.#inLine(request, { reply, sentAt, nextMs }, until, gaveUp);
    }
  }

  /** At which limit others wait who were here first. */
  #before({ identity }: TakeRequest): Full['scope'] | null {
    if (this.#lines.has(userHash(identity.userId))) return 'user';
    return this.#lines.has(FLEET) ? 'fleet' : null;
  }

  /** Takes; at a limit once more, after what makes room has gone. */
  async #attempt(request: TakeRequest, gaveUp: AbortSignal): Promise<Asked<Counted>> {
    const asked = await this.#ask(request);
    if (asked.reply.kind !== 'full') return asked;
    const room = this.#makeRoom(asked.reply, request);
    const left = gaveUp.aborted ? 'nobody' : await Promise.race([room, aborted(gaveUp)]);
    if (left === 'gave up') throw this.#exhausted(asked.reply, RETRY_MS.least);
    const { made, nextMs } = await room;
    return made ? this.#ask(request) : { ...asked, nextMs };
  }

  /** Takes; in a life of the store in which nobody has counted what runs, after that was done. */
  async #ask(request: TakeRequest): Promise<Asked<Counted>> {
    const { store, census, clock } = this.#options;
    for (let round = 0; round <= MOST_CENSUSES; round += 1) {
      const sentAt = clock.monotonic();
      const reply = await store.take(request);
      if (reply.kind !== 'uncounted') return { reply, sentAt, nextMs: null };
      await census.take();
    }
    throw new BrokerError('store_unavailable', 'The lease store loses its keys again and again.');
  }

  /** Admitted, or at another limit than that of its line. */
  async #inLine(
    request: TakeRequest,
    { reply: first, ...asked }: Asked<Full>,
    until: number,
    gaveUp: AbortSignal,
  ): Promise<Asked<Counted>> {
    const { clock } = this.#options;
    const left = (): number => Math.max(0, until - clock.monotonic());
    const key = lineOf(first, request);
    const place = this.#lines.join(key);
    let { nextMs } = asked;
    let making: Promise<void> | null = null;
    const makeRoom = async (full: Full): Promise<void> => {
      const room = await this.#makeRoom(full, request).catch(() => null); // the next question to the store tells
      making = null;
      nextMs = room?.nextMs ?? null;
      if (room?.made === true) place.ring();
    };
    try {
      if (!place.isHead) await this.#until(place.atHead, left(), gaveUp);
      while (left() > 0 && !gaveUp.aborted && place.isHead) {
        const news = place.hear();
        const again = await this.#ask(request);
        if (again.reply.kind !== 'full' || lineOf(again.reply, request) !== key) return again;
        making ??= makeRoom(again.reply);
        await this.#news(news, left(), gaveUp);
      }
      throw this.#exhausted(first, making === null ? nextMs : RETRY_MS.least);
    } finally {
      place.leave();
    }
  }

  async #news(news: AbortSignal, ms: number, gaveUp: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    await clock.pause(Math.min(ASK_AGAIN_MS * (0.75 + random() / 2), ms), AbortSignal.any([gaveUp, news]));
    if (news.aborted) await clock.pause(Math.min(JITTER_MS * random(), ms), gaveUp);
  }

  async #until(turn: Place['atHead'], ms: number, gaveUp: AbortSignal): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([gaveUp, over.signal]);
    await Promise.race([turn, this.#options.clock.pause(ms, signal)]);
    over.abort();
  }

  #makeRoom({ scope }: Full, { identity }: TakeRequest): Promise<Room> {
    return this.#options.eviction.makeRoom(scope === 'user' ? identity.userId : null);
  }

  /** `nextMs`: until the next sandbox will be unheld; it may be released at any time before. Null: not known. */
  #exhausted({ scope }: Full, nextMs: number | null): BrokerError {
    const { max, perUser } = this.#options.limits;
    const retryMs = Math.min(Math.max(nextMs ?? RETRY_MS.unknown, RETRY_MS.least), RETRY_MS.most);
    return capacityExhausted(scope, scope === 'fleet' ? max : perUser, retryMs);
  }
}

const lineOf = ({ scope }: Full, { identity }: TakeRequest): string =>
  scope === 'user' ? userHash(identity.userId) : FLEET;

function aborted(signal: AbortSignal): Promise<'gave up'> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('gave up'), { once: true }));
}
