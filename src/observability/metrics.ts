import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { BrokerEvent, Emit } from '../domain/events.ts';

/** From a re-acquire to a cold start behind a pull, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export interface Gauges {
  /** Sandboxes that this replica owns. */
  readonly owned: () => number;
  readonly openTasks: () => number;
  readonly ready: () => boolean;
}

export interface Metrics {
  readonly observe: Emit;
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/**
 * Prometheus metrics, made of events and of what this process knows. Nothing here asks store or engine, so that they
 * can be scraped while both are down. No label carries a user's text or an id.
 */
export function createMetrics(gauges: Gauges): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const acquires = new Histogram({
    name: 'sandbox_broker_acquire_seconds',
    help: 'Acquires answered with a sandbox, by how the caller came by it.',
    labelNames: ['origin'],
    buckets: BUCKETS,
    registers,
  });
  const failures = new Counter({
    name: 'sandbox_broker_acquire_failures_total',
    help: 'Acquires that failed, by problem code.',
    labelNames: ['code'],
    registers,
  });
  const steps = new Histogram({
    name: 'sandbox_broker_start_step_seconds',
    help: 'Cold starts by step: create, start, ready.',
    labelNames: ['step'],
    buckets: BUCKETS,
    registers,
  });
  const removals = new Counter({
    name: 'sandbox_broker_removals_total',
    help: 'Removals by reason and outcome (removed, stopped, failed).',
    labelNames: ['reason', 'outcome'],
    registers,
  });
  const adoptions = new Counter({ name: 'sandbox_broker_adoptions_total', help: 'Sandboxes adopted.', registers });
  const leases = new Counter({
    name: 'sandbox_broker_lease_changes_total',
    help: 'Leases of this replica that a peer took over (lost) or the store had forgotten (reasserted).',
    labelNames: ['change'],
    registers,
  });
  const loops = new Counter({
    name: 'sandbox_broker_loop_failures_total',
    help: 'Background passes that failed, by loop.',
    labelNames: ['loop'],
    registers,
  });
  const passes = new Histogram({
    name: 'sandbox_broker_pass_seconds',
    help: 'Background passes that were completed, by loop.',
    labelNames: ['loop'],
    buckets: BUCKETS,
    registers,
  });
  gauge('sandbox_broker_sandboxes_owned', 'Sandboxes whose lease this replica holds.', gauges.owned);
  gauge('sandbox_broker_background_tasks', 'Removals and abandoned starts that are under way.', gauges.openTasks);
  gauge('sandbox_broker_ready', '1 while this replica wants traffic.', () => Number(gauges.ready()));

  function gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  }

  function observe(event: BrokerEvent): void {
    switch (event.type) {
      case 'acquired':
        acquires.observe({ origin: event.origin }, event.durationMs / 1000);
        break;
      case 'acquire-failed':
        failures.inc({ code: event.code });
        break;
      case 'started':
        steps.observe({ step: 'create' }, event.createMs / 1000);
        steps.observe({ step: 'start' }, event.startMs / 1000);
        steps.observe({ step: 'ready' }, event.readyMs / 1000);
        break;
      case 'removed':
        removals.inc({ reason: event.reason, outcome: 'removed' });
        break;
      case 'removal-stopped':
        removals.inc({ reason: event.reason, outcome: 'stopped' });
        break;
      case 'removal-failed':
        removals.inc({ reason: event.reason, outcome: 'failed' });
        break;
      case 'adopted':
        adoptions.inc();
        break;
      case 'lease-lost':
        leases.inc({ change: 'lost' });
        break;
      case 'lease-reasserted':
        leases.inc({ change: 'reasserted' });
        break;
      case 'loop-failed':
        loops.inc({ loop: event.loop });
        break;
      case 'renewal-pass':
        passes.observe({ loop: 'renewal' }, event.durationMs / 1000);
        break;
      case 'reconcile-pass':
        passes.observe({ loop: 'reconcile' }, event.durationMs / 1000);
        break;
      default:
        break;
    }
  }

  return {
    observe,
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}
