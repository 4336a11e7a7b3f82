import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** From a re-acquire to a cold start behind a pull, in seconds. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const PREFIX = 'sandbox_broker';
const SHARED = 'Every replica tells the same: take the max, never the sum.';

export type MetricSet = ReturnType<typeof metricSet>;

/**
 * Every series of the broker's own, by name, with its labels. No label carries a user's text or an id, and each takes
 * its values from a closed list or from the configuration. What is about the whole fleet is called `fleet_`; all else
 * is about this replica and may be summed up. docs/metrics.md says what each is for.
 */
export function metricSet(registry: Registry) {
  const registers = [registry];
  const histogram = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Histogram({ name: `${PREFIX}_${name}_duration_seconds`, help, labelNames, buckets: SECONDS, registers });
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name: `${PREFIX}_${name}_total`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name: `${PREFIX}_${name}`, help, labelNames, registers });
  const fleet = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    gauge(`fleet_${name}`, `${help} ${SHARED}`, ...labelNames);
  return {
    buildInfo: gauge('build_info', 'Always 1; the labels tell what runs.', 'version', 'deployment', 'store'),
    ready: gauge('ready', '1 while this replica wants traffic.'),
    dependencyUp: gauge('dependency_up', '1 if it answered when it was last asked.', 'dependency'),
    following: gauge('engine_events_followed', "1 while the engine's events are followed without a gap."),
    mismatches: counter('engine_mismatches', "Looks at an engine that is not the deployment's."),

    acquires: histogram('acquire', 'Acquires by how they came out and how the caller came by it.', 'outcome', 'origin'),
    acquireFailures: counter('acquire_failures', 'Acquires that failed, by problem code.', 'code'),
    startSteps: histogram('start_step', 'Cold starts by step: create, start, ready.', 'step'),
    startFailures: counter('start_failures', 'Starts that failed, by problem code.', 'code'),
    pulls: counter('image_pulls', 'Image pulls, by outcome.', 'outcome'),
    endings: counter('endings', 'Sandboxes whose container ended by itself.'),

    owned: gauge('sandboxes_owned', 'Sandboxes of this replica by state, as of its last reconcile pass.', 'state'),
    fleetSandboxes: fleet('sandboxes', 'Sandboxes of all replicas by state, as of the last reconcile pass.', 'state'),
    fleetContainers: fleet(
      'containers',
      "The deployment's containers, in whatever state, as of the last reconcile pass.",
    ),
    fleetMax: fleet('capacity_max', 'The limit of sandboxes (capacity.max); 0: none.'),
    waiting: gauge('capacity_waiting', 'Callers that wait for a slot at this replica.'),
    sparesReady: fleet('spares_ready', 'Spares that can be claimed, as of the last look.', 'profile'),
    sparesWanted: fleet('spares_wanted', 'Spares that are kept (profiles.<name>.spares).', 'profile'),
    spareStarts: counter('spare_starts', 'Starts of spares, by outcome.', 'profile', 'outcome'),

    removals: counter('removals', 'Removals by reason and outcome: removed, stopped, failed.', 'reason', 'outcome'),
    removalTime: histogram('removal', 'From the stop to the end of a container that was removed.', 'reason'),
    teardownsOpen: gauge('teardowns_open', 'Containers on their way out here, also those whose removal failed.'),
    teardownOldest: gauge(
      'teardown_oldest_open_seconds',
      'For how long the first of the open teardowns has been open.',
    ),
    tasks: gauge('background_tasks', 'Removals and abandoned starts under way.'),
    suspects: fleet('suspects', 'Containers that no record accounts for, as of the last reconcile pass.'),
    suspectOldest: fleet('suspect_oldest_seconds', 'For how long the first suspect has been one.'),
    unreadable: fleet('records_unreadable', 'Records that cannot be read, as of the last reconcile pass.'),

    tracked: gauge('leases_tracked', 'Leases that this replica believes to hold.'),
    leaseDuration: gauge('lease_duration_seconds', 'How long a lease lasts without renewal (lease.duration).'),
    renewals: counter('lease_renewals', 'Leases renewed.'),
    adoptions: counter('adoptions', 'Sandboxes adopted from an owner that was gone.'),
    lost: counter('leases_lost', 'Leases that a peer has taken over.'),
    reasserted: counter('leases_reasserted', 'Leases written again after the store had lost them.'),

    passes: histogram('loop_pass', 'Background passes that succeeded, by loop.', 'loop'),
    loopFailures: counter('loop_failures', 'Background passes that failed, by loop.', 'loop'),
    loopLag: gauge('loop_lag_seconds', 'How much later than planned the last pass began, by loop.', 'loop'),
    loopInterval: gauge('loop_interval_seconds', 'From the end of a pass to the next, by loop.', 'loop'),
    loopSuccess: gauge(
      'loop_last_success_timestamp_seconds',
      'When a pass last succeeded (at first: the start).',
      'loop',
    ),

    requests: histogram('http_request', 'HTTP requests; status 0: the client hung up.', 'method', 'route', 'status'),
    storeCalls: histogram('store_call', 'Calls of the lease store by operation, however they came out.', 'call'),
    storeFailures: counter('store_call_failures', 'Calls of the lease store that failed.', 'call', 'code'),
    engineCalls: histogram(
      'engine_call',
      'Calls of the container runtime by operation, however they came out.',
      'call',
    ),
    engineFailures: counter('engine_call_failures', 'Calls of the container runtime that failed.', 'call', 'code'),
  };
}
