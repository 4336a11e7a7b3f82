import { Client } from 'undici';
import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock } from '../domain/timing.ts';
import { withDeadline } from './deadline.ts';

/** One attempt is given up after this long, so that a reply which never ends costs one attempt, not the whole wait. */
const ATTEMPT_MS = 5_000;
/** Pauses between attempts: short at first, because a sandbox is usually ready within a few of them. */
const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 250;
const GROWTH = 1.25;
/** More than this is no readiness reply. */
const MAX_BODY_BYTES = 1024 * 1024;

/** What a look at the container told while it was waited for. */
export type ReadinessLook =
  | { readonly kind: 'running'; readonly url: string; readonly probeUrl: string }
  /** Runs, but cannot be reached yet, or cannot be seen for the moment. */
  | { readonly kind: 'not-yet'; readonly because: string }
  | { readonly kind: 'ended' };

export interface ReadinessOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly deadlineMs: number;
  /** Names the container in messages. */
  readonly container: string;
  /** Never rejects, and settles within so many milliseconds. */
  look(limitMs: number): Promise<ReadinessLook>;
  /** How the container does or did, with its last log lines, for the error. Never rejects. */
  describe(): Promise<string>;
}

/**
 * Polls until the readiness path answers 200 and the container, looked at once more, still runs at that address:
 * a port may be somebody else's by the time it answers. Resolves with the url for callers.
 */
export async function waitUntilReady(options: ReadinessOptions): Promise<string> {
  const { clock, profile, container } = options;
  const limitMs = Math.min(options.deadlineMs, profile.readiness.timeoutMs);
  const end = clock.monotonic() + limitMs;
  const left = (): number => end - clock.monotonic();
  let last = 'it was not asked yet';
  let status: number | null = null;
  for (let pause = FIRST_PAUSE_MS; left() > 0; pause = Math.min(LAST_PAUSE_MS, pause * GROWTH)) {
    const seen = await options.look(left());
    if (seen.kind === 'ended') throw await ended(options);
    if (seen.kind === 'not-yet') last = seen.because;
    else {
      const refused = await probe(seen.probeUrl, profile.readiness.path, Math.min(ATTEMPT_MS, left()));
      if (refused === null) {
        const again = await options.look(Math.max(1, left()));
        if (again.kind === 'ended') throw await ended(options);
        if (again.kind === 'running' && again.url === seen.url) return seen.url;
        last = again.kind === 'running' ? 'its address changed' : again.because;
      } else {
        last = refused.because;
        status = refused.status ?? status;
      }
    }
    await clock.pause(Math.min(pause, Math.max(0, left())));
  }
  const words = status === null ? 'no status ever came' : `the last status was ${status}`;
  throw new BrokerError(
    'sandbox_not_ready',
    `container ${container} was not ready within ${limitMs} ms; ${profile.readiness.path}: ${last}, ${words}; ${await options.describe()}`,
  );
}

async function ended({ container, describe }: ReadinessOptions): Promise<BrokerError> {
  return new BrokerError(
    'sandbox_start_failed',
    `container ${container} ended before it was ready: ${await describe()}`,
  );
}

/** What came instead of a 200; the status, if one came. */
export interface NotReady {
  readonly status: number | null;
  readonly because: string;
}

/**
 * Asks once, over a connection of its own that is closed afterwards and knows no proxy. Null: a complete reply with
 * status 200. A redirect is an answer like any other. Settles within `limitMs`.
 */
export async function probe(url: string, path: string, limitMs: number): Promise<NotReady | null> {
  const client = new Client(url, { headersTimeout: 0, bodyTimeout: 0, connectTimeout: 0 });
  let status: number | null = null;
  try {
    return await withDeadline(
      limitMs,
      async (signal) => {
        const reply = await client.request({ method: 'GET', path, signal, reset: true });
        status = reply.statusCode;
        if (status !== 200) return { status, because: 'not a 200' };
        let bytes = 0;
        for await (const chunk of reply.body as AsyncIterable<Buffer>) {
          bytes += chunk.length;
          if (bytes > MAX_BODY_BYTES) return { status, because: 'a reply without end' };
        }
        return null;
      },
      () => new Error('out of time'),
    );
  } catch (error) {
    return { status, because: `no complete reply (${codeOf(error) ?? messageOf(error)})` };
  } finally {
    // A client with an unread reply never closes by itself.
    await client.destroy().catch(() => undefined);
  }
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? code : null;
}
