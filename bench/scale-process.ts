/**
 * One replica's lifecycle over a real Redis and a stub engine, with so many sandboxes, in a process of its own (with
 * --expose-gc). Argument: how many. Tells its parent one `Scale`.
 */
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseConfig } from '../src/config/load-config.ts';
import { sandboxId } from '../src/domain/identity.ts';
import { asOwnerId, type SandboxId } from '../src/domain/ids.ts';
import { RedisLeaseStore } from '../src/leases/redis-store.ts';
import { assembleLifecycle } from '../src/lifecycle/assemble.ts';
import { systemClock } from '../src/observability/clock.ts';
import { instrument } from '../src/observability/instrument.ts';
import { countSandboxes, listSandboxes } from '../src/service/listing.ts';
import { median } from './report.ts';
import { brokerYaml, newDeployment, surroundings } from './settings.ts';
import { containerOf, MARK, stubRuntime, urlOf } from './stub-runtime.ts';

/** Medians of several passes: wall time, and the longest time for which nothing else could run. */
export interface Timed {
  readonly ms: number;
  readonly stallMs: number;
  /** Calls of store and engine in one pass. */
  readonly calls: Readonly<Record<string, number>>;
}

export interface Scale {
  readonly count: number;
  readonly take: Timed;
  readonly renew: Timed;
  readonly reconcile: Timed;
  readonly list: Timed;
  /** The counts of `GET /v1/status`. */
  readonly status: Timed;
  readonly residentMb: number;
}

const PASSES = 7;
/** More than there are: every take is counted, none is refused. */
const LIMIT = 100_000;
const TAKES = 200;
const AT_ONCE = 200;
const count = Number(process.argv[2]);
const deployment = newDeployment();
const config = parseConfig(brokerYaml({ deployment }), {});
const profile = config.profiles.get('default')!;
const leaseMs = config.lease.durationMs * 100;
const holdTtlMs = config.holds.ttlMs;
const identities = Array.from({ length: count }, (_, n) => ({
  deployment,
  profile: 'default',
  userId: `user ${n % 97}`,
  threadId: `thread ${n}`,
}));
const ids: SandboxId[] = [];
let calls: Record<string, number> = {};
const countCall = (call: string): void => {
  calls[call] = (calls[call] ?? 0) + 1;
};
const now = (): number => performance.now();

const redis = new RedisLeaseStore({
  address: { url: surroundings().redisUrl, sentinels: [], sentinelName: null, commandTimeoutMs: 5_000 },
  keyPrefix: 'bench',
  deployment,
  owner: asOwnerId(`${hostname()}:bench`),
  policy: { leaseMs, holdTtlMs, maxSandboxes: LIMIT, maxPerUser: LIMIT },
});
const store = instrument(redis, now, countCall);
const runtime = instrument(stubRuntime(ids), now, countCall);
const lifecycle = assembleLifecycle({
  store,
  runtime,
  settings: {
    leaseMs,
    holdTtlMs,
    idleMs: 0,
    reconcileIntervalMs: 30_000,
    startTimeoutMs: 1_000,
    parallelStarts: 1,
    capacity: { max: LIMIT, perUser: LIMIT, waitTimeoutMs: 0 },
    profiles: new Map([['default', { profile, spec: 'bench' }]]),
  },
  clock: systemClock,
  random: Math.random,
  emit: () => undefined,
});
while (
  !(await redis.ping().then(
    () => true,
    () => false,
  ))
)
  await systemClock.pause(20);
await lifecycle.engine.settle();
await lifecycle.reconciler.pass(); // counts what runs, so that takes are let in
const idle = resident();
await seed();
const ending = new AbortController();
const following = lifecycle.liveness.follow(ending.signal);

const renew = await timed(() => lifecycle.renewal.pass());
const reconcile = await timed(() => lifecycle.reconciler.pass());
const residentMb = resident() - idle;
const list = await timed(() => listSandboxes(store, { limit: 50 }, 0));
const status = await timed(() => countSandboxes(store));
const take = await timed(takes);
ending.abort();
await following;
const scale: Scale = { count, take: per(take, TAKES), renew, reconcile, list, status, residentMb };
process.send?.(scale);
await redis.close();
process.disconnect?.();

/** A ready sandbox for each identity, as acquires leave them. */
async function seed(): Promise<void> {
  for (let first = 0; first < count; first += AT_ONCE) {
    await Promise.all(
      identities.slice(first, first + AT_ONCE).map(async (identity) => {
        const id = sandboxId(identity);
        const sentAt = now();
        const taken = await redis.take({ id, identity, spec: 'bench' });
        if (taken.kind !== 'starting') throw new Error(`seeding: ${taken.kind}`);
        const { fence } = taken;
        const about = {
          id,
          fence,
          container: containerOf(id),
          engine: MARK,
          url: urlOf(id),
          found: false,
          since: fence,
        };
        const record = await redis.activate({ ...about, spec: 'bench', createdAt: null, holdMs: holdTtlMs });
        if (record === 'moved') throw new Error('seeding: moved');
        lifecycle.tracked.remember(record, sentAt, true);
        ids.push(id);
      }),
    );
  }
}

/** Acquires of ready sandboxes and their releases, without HTTP. */
async function takes(): Promise<void> {
  for (let n = 0; n < TAKES; n += 1) {
    const identity = identities[(n * 7919) % count]!;
    const id = sandboxId(identity);
    const caller = { gaveUp: new AbortController().signal, slow: () => undefined };
    const { hold } = await lifecycle.acquire.run({ id, identity, profile, spec: 'bench' }, caller);
    await store.release(id, hold);
  }
}

async function timed(pass: () => Promise<unknown>): Promise<Timed> {
  const times: number[] = [];
  const stalls: number[] = [];
  for (let n = 0; n < PASSES; n += 1) {
    gc?.();
    calls = {};
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await systemClock.pause(5);
    delay.reset();
    const began = now();
    await pass();
    times.push(now() - began);
    await systemClock.pause(5);
    delay.disable();
    stalls.push(Math.max(0, delay.max / 1e6 - 1));
  }
  return { ms: median(times), stallMs: median(stalls), calls };
}

function per({ ms, stallMs, calls: all }: Timed, parts: number): Timed {
  return {
    ms: ms / parts,
    stallMs,
    calls: Object.fromEntries(Object.entries(all).map(([name, n]) => [name, n / parts])),
  };
}

/** What stays resident once the engine of JavaScript has given back what it keeps for bursts. */
function resident(): number {
  globalThis.gc?.({ execution: 'sync', type: 'major', flavor: 'last-resort' });
  return process.memoryUsage.rss() / 2 ** 20;
}
