import { collectDefaultMetrics, Registry } from 'prom-client';
import { ERROR_CODES } from '../domain/errors.ts';
import { type BrokerEvent, type Emit, ORIGINS, REMOVAL_REASONS } from '../domain/events.ts';
import type { ObserveCall } from './instrument.ts';
import { type MetricSet, metricSet } from './metric-set.ts';

/** What does not change while the process runs. */
export interface About {
  readonly version: string;
  readonly deployment: string;
  readonly store: string;
  /** 0: no limit. */
  readonly maxSandboxes: number;
  readonly leaseMs: number;
}

/** What the process knows of itself when it is asked. */
export interface Readings {
  readonly tracked: () => number;
  readonly openTasks: () => number;
  readonly ready: () => boolean;
  /** Callers in line for a slot. */
  readonly waiting: () => number;
  readonly teardowns: () => { readonly count: number; readonly oldestMs: number };
  readonly spares: () => ReadonlyMap<string, { readonly ready: number; readonly wanted: number }>;
  readonly imagesPresent: () => boolean;
  readonly followsEngine: () => boolean;
}

export interface Metrics {
  readonly observe: Emit;
  readonly storeCall: ObserveCall;
  readonly engineCall: ObserveCall;
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export interface MetricsOptions {
  readonly about: About;
  readonly readings: Readings;
  /** Epoch milliseconds. */
  readonly wall: () => number;
}

/** Of the loops that always run: one that never succeeds is as old as the process. */
const ALWAYS = ['renewal', 'reconcile'] as const;
/** The calls that tell whether the engine as a whole answers; others may wait for one container. */
const ENGINE_PROBES: readonly string[] = ['mark', 'list', 'ping'];
const ENDLESS = 'watch';
const seconds = (ms: number): number => ms / 1000;

/**
 * Prometheus metrics, made of events and of what this process knows. Nothing here asks store or engine, so that they
 * can be scraped while both are down.
 */
export function createMetrics({ about, readings, wall }: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Gauges with a counter's name: a checker of the format refuses them.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`);
  const set = metricSet(registry);
  prepare(set, about, seconds(wall()));

  return {
    observe: observing(set, wall),
    storeCall: (call, outcome, ms) => {
      const failures = { call, code: 'store_unavailable' };
      if (outcome === 'ok') set.storeFailures.inc(failures, 0);
      else set.storeFailures.inc({ call, code: outcome });
      set.storeCalls.observe({ call }, seconds(ms));
      set.dependencyUp.set({ dependency: 'store' }, Number(outcome !== 'store_unavailable'));
    },
    engineCall: (call, outcome, ms) => {
      if (outcome === 'ok') set.engineFailures.inc({ call, code: 'runtime_unavailable' }, 0);
      else set.engineFailures.inc({ call, code: outcome });
      if (call !== ENDLESS) set.engineCalls.observe({ call }, seconds(ms));
      if (ENGINE_PROBES.includes(call)) set.dependencyUp.set({ dependency: 'engine' }, Number(outcome === 'ok'));
    },
    render: async () => {
      read(set, readings);
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

/** Every series whose labels are known is there from the start: what happens for the first time is a change. */
function prepare(set: MetricSet, { version, deployment, store, maxSandboxes, leaseMs }: About, now: number): void {
  set.buildInfo.set({ version, deployment, store }, 1);
  set.fleetMax.set(maxSandboxes);
  set.leaseDuration.set(seconds(leaseMs));
  for (const dependency of ['store', 'engine', 'images']) set.dependencyUp.set({ dependency }, 0);
  for (const loop of ALWAYS) set.loopSuccess.set({ loop }, now);
  for (const origin of ORIGINS) set.acquires.zero({ outcome: 'ready', origin });
  set.acquires.zero({ outcome: 'failed', origin: 'none' });
  for (const code of ERROR_CODES) {
    set.acquireFailures.inc({ code }, 0);
    set.startFailures.inc({ code }, 0);
  }
  for (const step of ['create', 'start', 'ready']) set.startSteps.zero({ step });
  for (const outcome of ['begun', 'done', 'failed']) set.pulls.inc({ outcome }, 0);
  for (const reason of REMOVAL_REASONS) {
    set.removalTime.zero({ reason });
    for (const outcome of ['removed', 'stopped', 'failed']) set.removals.inc({ reason, outcome }, 0);
  }
  for (const state of ['starting', 'active', 'warm', 'destroying']) {
    set.owned.set({ state }, 0);
    set.fleetSandboxes.set({ state }, 0);
  }
}

/** What is not told by events. */
function read(set: MetricSet, readings: Readings): void {
  set.tracked.set(readings.tracked());
  set.tasks.set(readings.openTasks());
  set.ready.set(Number(readings.ready()));
  set.waiting.set(readings.waiting());
  set.following.set(Number(readings.followsEngine()));
  set.dependencyUp.set({ dependency: 'images' }, Number(readings.imagesPresent()));
  const { count, oldestMs } = readings.teardowns();
  set.teardownsOpen.set(count);
  set.teardownOldest.set(seconds(oldestMs));
  for (const [profile, { ready, wanted }] of readings.spares()) {
    set.sparesReady.set({ profile }, ready);
    set.sparesWanted.set({ profile }, wanted);
    for (const outcome of ['ready', 'failed']) set.spareStarts.inc({ profile, outcome }, 0);
  }
}

function observing(set: MetricSet, wall: () => number): Emit {
  const heard: { readonly [T in BrokerEvent['type']]?: (event: Extract<BrokerEvent, { type: T }>) => void } = {
    acquired: ({ origin, durationMs }) => set.acquires.observe({ outcome: 'ready', origin }, seconds(durationMs)),
    'acquire-failed': ({ code, durationMs }) => {
      set.acquires.observe({ outcome: 'failed', origin: 'none' }, seconds(durationMs));
      set.acquireFailures.inc({ code });
    },
    started: ({ createMs, startMs, readyMs }) => {
      set.startSteps.observe({ step: 'create' }, seconds(createMs));
      set.startSteps.observe({ step: 'start' }, seconds(startMs));
      set.startSteps.observe({ step: 'ready' }, seconds(readyMs));
    },
    'start-failed': ({ code }) => set.startFailures.inc({ code }),
    'image-pull': ({ progress }) => {
      const outcome = { begins: 'begun', done: 'done', failed: 'failed' }[progress];
      if (outcome !== undefined) set.pulls.inc({ outcome });
    },
    'spare-added': ({ profile }) => set.spareStarts.inc({ profile, outcome: 'ready' }),
    'spare-failed': ({ profile }) => set.spareStarts.inc({ profile, outcome: 'failed' }),
    removed: ({ reason, durationMs }) => {
      set.removals.inc({ reason, outcome: 'removed' });
      set.removalTime.observe({ reason }, seconds(durationMs));
    },
    'removal-stopped': ({ reason }) => set.removals.inc({ reason, outcome: 'stopped' }),
    'removal-failed': ({ reason }) => set.removals.inc({ reason, outcome: 'failed' }),
    adopted: () => set.adoptions.inc(),
    ended: () => set.endings.inc(),
    'lease-lost': () => set.lost.inc(),
    'lease-reasserted': () => set.reasserted.inc(),
    'engine-mismatch': () => set.mismatches.inc(),
    'leases-not-shared': () => set.mismatches.inc(),
    'renewal-pass': ({ renewed }) => set.renewals.inc(renewed),
    'reconcile-pass': ({ containers, owned, fleet, unreadable, suspects }) => {
      for (const [state, count] of Object.entries(owned)) set.owned.set({ state }, count);
      for (const [state, count] of Object.entries(fleet)) set.fleetSandboxes.set({ state }, count);
      set.fleetContainers.set(containers);
      set.unreadable.set(unreadable);
      set.suspects.set(suspects.count);
      set.suspectOldest.set(seconds(suspects.oldestMs));
    },
    'loop-pass': ({ loop, intervalMs, durationMs, lagMs }) => {
      set.passes.observe({ loop }, seconds(durationMs));
      set.loopFailures.inc({ loop }, 0);
      set.loopLag.set({ loop }, seconds(lagMs));
      set.loopInterval.set({ loop }, seconds(intervalMs));
      set.loopSuccess.set({ loop }, seconds(wall()));
    },
    'loop-failed': ({ loop }) => set.loopFailures.inc({ loop }),
    request: ({ method, route, status, durationMs }) =>
      set.requests.observe({ method, route, status: String(status) }, seconds(durationMs)),
  };
  return (event) => (heard[event.type] as ((event: BrokerEvent) => void) | undefined)?.(event);
}
