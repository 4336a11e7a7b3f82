import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** From a re-acquire to a cold start behind a pull, in seconds. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const PREFIX = 'sandbox_broker';

/** Every series of the broker's own, by name, with its labels. No label carries a user's text or an id. */
export function metricSet(registry: Registry) {
  const registers = [registry];
  const histogram = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Histogram({ name: `${PREFIX}_${name}_seconds`, help, labelNames, buckets: SECONDS, registers });
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name: `${PREFIX}_${name}_total`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Gauge({ name: `${PREFIX}_${name}`, help, labelNames, registers });
  return {
    acquires: histogram('acquire', 'Acquires answered with a sandbox, by how the caller came by it.', ['origin']),
    acquireFailures: counter('acquire_failures', 'Acquires that failed, by problem code.', ['code']),
    startSteps: histogram('start_step', 'Cold starts by step: create, start, ready.', ['step']),
    startFailures: counter('start_failures', 'Starts that failed, by problem code.', ['code']),
    removals: counter('removals', 'Removals by reason and outcome: removed, stopped, failed.', ['reason', 'outcome']),
    removalTime: histogram('removal', 'From the stop to the end of a container that was removed.', ['reason']),
    adoptions: counter('adoptions', 'Sandboxes adopted.', []),
    endings: counter('endings', 'Sandboxes whose container ended by itself.', []),
    renewals: counter('lease_renewals', 'Leases renewed.', []),
    leaseChanges: counter(
      'lease_changes',
      'Leases that a peer took over (lost) or that the store had forgotten (reasserted).',
      ['change'],
    ),
    passes: histogram('pass', 'Background passes that were completed, by loop.', ['loop']),
    loopFailures: counter('loop_failures', 'Background passes that failed, by loop.', ['loop']),
    owned: gauge('sandboxes_owned', 'Sandboxes of this replica by state, as of its last reconcile pass.', ['state']),
    tracked: gauge('leases_tracked', 'Leases that this replica believes to hold.', []),
    tasks: gauge('background_tasks', 'Removals and abandoned starts under way.', []),
    ready: gauge('ready', '1 while this replica wants traffic.', []),
    requests: histogram('http_request', 'HTTP requests by method, route pattern and status.', [
      'method',
      'route',
      'status',
    ]),
    storeCalls: histogram('store_call', 'Calls of the lease store, by operation and outcome.', ['call', 'outcome']),
    engineCalls: histogram('engine_call', 'Calls of the container runtime, by operation and outcome.', [
      'call',
      'outcome',
    ]),
  };
}
