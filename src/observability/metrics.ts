import { collectDefaultMetrics, Registry } from 'prom-client';
import type { BrokerEvent, Emit } from '../domain/events.ts';
import type { ObserveCall } from './instrument.ts';
import { metricSet } from './metric-set.ts';

/** What the process knows of itself when it is asked. */
export interface Readings {
  readonly tracked: () => number;
  readonly openTasks: () => number;
  readonly ready: () => boolean;
}

export interface Metrics {
  readonly observe: Emit;
  readonly storeCall: ObserveCall;
  readonly engineCall: ObserveCall;
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/**
 * Prometheus metrics, made of events and of what this process knows. Nothing here asks store or engine, so that they
 * can be scraped while both are down.
 */
export function createMetrics(readings: Readings): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const set = metricSet(registry);
  const seconds = (ms: number): number => ms / 1000;

  function observe(event: BrokerEvent): void {
    switch (event.type) {
      case 'acquired':
        set.acquires.observe({ origin: event.origin }, seconds(event.durationMs));
        break;
      case 'acquire-failed':
        set.acquireFailures.inc({ code: event.code });
        break;
      case 'started':
        set.startSteps.observe({ step: 'create' }, seconds(event.createMs));
        set.startSteps.observe({ step: 'start' }, seconds(event.startMs));
        set.startSteps.observe({ step: 'ready' }, seconds(event.readyMs));
        break;
      case 'start-failed':
        set.startFailures.inc({ code: event.code });
        break;
      case 'removed':
        set.removals.inc({ reason: event.reason, outcome: 'removed' });
        set.removalTime.observe({ reason: event.reason }, seconds(event.durationMs));
        break;
      case 'removal-stopped':
        set.removals.inc({ reason: event.reason, outcome: 'stopped' });
        break;
      case 'removal-failed':
        set.removals.inc({ reason: event.reason, outcome: 'failed' });
        break;
      case 'adopted':
        set.adoptions.inc();
        break;
      case 'ended':
        set.endings.inc();
        break;
      case 'lease-lost':
        set.leaseChanges.inc({ change: 'lost' });
        break;
      case 'lease-reasserted':
        set.leaseChanges.inc({ change: 'reasserted' });
        break;
      case 'loop-failed':
        set.loopFailures.inc({ loop: event.loop });
        break;
      case 'renewal-pass':
        set.renewals.inc(event.renewed);
        set.passes.observe({ loop: 'renewal' }, seconds(event.durationMs));
        break;
      case 'reconcile-pass':
        for (const [state, count] of Object.entries(event.owned)) set.owned.set({ state }, count);
        set.passes.observe({ loop: 'reconcile' }, seconds(event.durationMs));
        break;
      case 'request': {
        const { method, route, status, durationMs } = event;
        set.requests.observe({ method, route, status: String(status) }, seconds(durationMs));
        break;
      }
      default:
        break;
    }
  }

  return {
    observe,
    storeCall: (call, outcome, ms) => set.storeCalls.observe({ call, outcome }, seconds(ms)),
    engineCall: (call, outcome, ms) => set.engineCalls.observe({ call, outcome }, seconds(ms)),
    render: async () => {
      set.tracked.set(readings.tracked());
      set.tasks.set(readings.openTasks());
      set.ready.set(Number(readings.ready()));
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}
