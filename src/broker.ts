import type { BrokerConfig } from './config/broker-config.ts';
import { dockerConfig, lifecycleSettings, storeConfig } from './config/slices.ts';
import { messageOf } from './domain/errors.ts';
import type { Emit } from './domain/events.ts';
import { asOwnerId } from './domain/ids.ts';
import type { Clock, NewId, Random } from './domain/timing.ts';
import { type App, buildApp } from './http/app.ts';
import { listen } from './http/listen.ts';
import { type OpenStore, openStore } from './leases/open-store.ts';
import { assembleLifecycle } from './lifecycle/assemble.ts';
import { BackgroundLoop, type LoopOptions, stopAll } from './lifecycle/background-loop.ts';
import { History } from './lifecycle/history.ts';
import { logEvents } from './observability/event-log.ts';
import { instrument } from './observability/instrument.ts';
import type { Logger } from './observability/logger.ts';
import { createMetrics } from './observability/metrics.ts';
import { specHash } from './runtime/container-spec.ts';
import { DockerRuntime } from './runtime/docker-runtime.ts';
import { Handouts } from './service/handouts.ts';
import { SandboxHistory } from './service/history.ts';
import { Readiness } from './service/readiness.ts';
import { Sandboxes } from './service/sandboxes.ts';

export interface BrokerOptions {
  readonly config: BrokerConfig;
  /** `hostname:uuid`, new at each start. */
  readonly owner: string;
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly newId: NewId;
}

/** How soon a pass that failed is tried again: a dependency that comes back is noticed within it. */
const RETRY_MS = 1_000;
/** How often what happened to sandboxes is written down. */
const HISTORY_MS = 250;
/** The part of the drain time that is kept for the sandboxes, once no caller is waited for any more. */
const SANDBOXES_SHARE = 0.4;
const MEMORY_WARNING = 'the memory store cannot see peers: run one replica only, or share a Redis (store.url)';

/** One replica. The only place that knows every room. */
export class Broker {
  readonly #options: BrokerOptions;
  readonly #drained = new AbortController();
  #parts: Parts | null = null;
  #stopped: Promise<void> | null = null;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /**
   * Listens; waits for neither store nor engine. Rejects with an error whose message says what to do: the port is
   * taken, or another broker keeps this deployment in memory.
   */
  async start(): Promise<{ readonly host: string; readonly port: number }> {
    const { config, owner, clock, newId, logger } = this.#options;
    const opened = await openStore({
      config: storeConfig(config),
      owner: asOwnerId(owner),
      clock,
      newId,
      emit: logEvents(logger),
    });
    if (!opened.store.seesPeers) logger.warn(MEMORY_WARNING);
    const parts = build(this.#options, opened, this.#drained.signal);
    this.#parts = parts;
    const address = await listen(parts.app, config.server);
    for (const loop of [parts.renewing, parts.writing, ...parts.loops]) loop.start();
    return address;
  }

  /**
   * Ends within the drain time: no new work; what is under way finishes, or is told 503; sandboxes are handed over or
   * removed; connections are closed. Memoised. Never rejects.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    if (this.#parts === null) return;
    const { config, clock, logger } = this.#options;
    const { readiness, tasks, app, loops, preparing, renewing, writing, history, shutdown, opened, runtime } =
      this.#parts;
    const end = clock.monotonic() + config.shutdown.drainTimeoutMs * 0.95;
    const left = (): number => Math.max(0, end - clock.monotonic());
    const guarded = async (what: string, step: Promise<unknown>): Promise<void> => {
      const began = clock.monotonic();
      await step.catch((error: unknown) =>
        logger.error({ what, detail: messageOf(error) }, 'a step of the shutdown failed'),
      );
      logger.debug({ what, durationMs: clock.monotonic() - began }, 'a step of the shutdown is done');
    };
    readiness.drain();
    await tasks.drained(left() * (1 - SANDBOXES_SHARE));
    this.#drained.abort();
    await guarded('stop loops', stopAll([...loops, preparing], left() / 3));
    const policy = config.shutdown.sandboxes;
    await guarded(
      `${policy} sandboxes`,
      within(clock, left() * 0.8, policy === 'keep' ? shutdown.keep() : shutdown.destroy()),
    );
    await guarded('finish removals', tasks.drained(left() / 2));
    await guarded('stop renewal', renewing.stop(left() / 2));
    await guarded(
      'write history',
      writing.stop(left() / 2).then(() => within(clock, left() / 2, history.flush())),
    );
    await guarded('close http', within(clock, left() / 2, app.close()));
    await guarded('close store', within(clock, left(), opened.close()));
    await guarded('close engine', within(clock, left(), runtime.close()));
  }
}

type Parts = ReturnType<typeof build>;
type First = LoopOptions['first'];

function build(
  { config, version, logger, clock, random, newId }: BrokerOptions,
  opened: OpenStore,
  drained: AbortSignal,
) {
  const { deployment, capacity, lease, profiles } = config;
  const idleMs = config.idle.timeoutMs;
  const metrics = createMetrics({
    wall: () => clock.wall(),
    about: { version, deployment, store: config.store.type, maxSandboxes: capacity.max, leaseMs: lease.durationMs },
    readings: {
      tracked: () => tracked.size,
      openTasks: () => tasks.size,
      ready: () => readiness.because === null,
      waiting: () => admission.waiting,
      teardowns: () => lifecycle.teardown.open(),
      spares: () => spares.levels(),
      imagesPresent: () => images.problem === null,
      followsEngine: () => liveness.current,
    },
  });
  const toLog = logEvents(logger);
  const emit: Emit = (event) => {
    toLog(event);
    metrics.observe(event);
    history.note(event);
  };

  const now = (): number => clock.monotonic();
  const store = instrument(opened.store, now, metrics.storeCall);
  const docker = new DockerRuntime({ ...dockerConfig(config), profiles, clock, newId, emit });
  const runtime = instrument(docker, now, metrics.engineCall);
  const history = new History({ store: store.history, owner: store.owner, clock, emit });
  const specs = new Map([...profiles].map(([name, profile]) => [name, { profile, spec: specHash(profile) }]));
  const settings = { ...lifecycleSettings(config), profiles: specs };
  const lifecycle = assembleLifecycle({ store, runtime, settings, clock, random, emit });
  const {
    tasks,
    tracked,
    engine,
    admission,
    images,
    headroom,
    turns,
    liveness,
    acquire,
    destroy,
    renewal,
    reaper,
    reconciler,
    shutdown,
    spares,
  } = lifecycle;
  const readiness: Readiness = new Readiness({ store, engine, images, emit });

  const loop = (name: string, intervalMs: number, first: First, pass: (stopping: AbortSignal) => Promise<void>) =>
    new BackgroundLoop({ name, intervalMs, retryMs: RETRY_MS, first, pass, clock, random, emit });
  const { intervalMs } = config.reconcile;
  const renewing = loop('renewal', config.lease.renewIntervalMs, 'jittered', async () => {
    await renewal.pass();
    await spares.stay();
  });
  const preparing = loop('images', intervalMs, 'at once', async () => {
    await readiness.noting('images', images.pass());
    await headroom.look();
  });
  const reconciling = loop('reconcile', intervalMs, 'at once', async () => {
    await readiness.noting('reconcile', reconciler.pass());
    preparing.start(); // an engine that does not answer is told once
  });
  const following = new BackgroundLoop({
    ...{ name: 'liveness', intervalMs: RETRY_MS, first: 'at once', clock, random, emit },
    pass: (stopping) => liveness.follow(stopping),
  });
  const writing = loop('history', HISTORY_MS, 'jittered', () => history.flush());
  const refilling = loop('spares', intervalMs, 'jittered', (stopping) => spares.pass(stopping));
  store.listen((news) => {
    if (news === 'spare-taken') refilling.wake();
  });
  const loops = [
    reconciling,
    following,
    refilling,
    ...(idleMs > 0 ? [loop('idle', config.idle.checkIntervalMs, 'jittered', (stopping) => reaper.pass(stopping))] : []),
  ];

  const { waitMs } = config.acquire;
  const common = { store, tasks, clock, emit, idleMs };
  const handouts = new Handouts({ ...common, acquire, turns, deployment, profiles: specs, waitMs, drained });
  const about = {
    owner: store.owner,
    deployment,
    version,
    store: config.store.type,
    maxSandboxes: capacity.max,
    spares: new Map([...profiles].map(([name, profile]) => [name, profile.spares])),
  };
  const destroyWaitMs = config.runtime.docker.timeoutMs;
  const waiting = (): number => admission.waiting;
  const service = new Sandboxes({
    ...common,
    handouts,
    destroy,
    history: new SandboxHistory({ store, runtime }),
    readiness,
    about,
    waiting,
    destroyWaitMs,
  });
  const draining = (): boolean => readiness.draining;
  const app: App = buildApp({ service, auth: config.auth, logger, emit, metrics, version, newId, draining });
  return { app, opened, runtime, readiness, tasks, shutdown, history, renewing, writing, preparing, loops };
}

/** The step, or an error once its time is over. */
async function within(clock: Clock, ms: number, step: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const late = clock.pause(ms, timer.signal).then(() => {
    if (!timer.signal.aborted) throw new Error(`not done within ${Math.round(ms)} ms`);
  });
  await Promise.race([step, late]).finally(() => timer.abort());
}
