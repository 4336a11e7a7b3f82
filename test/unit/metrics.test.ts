import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { sandboxId } from '../../src/domain/identity.ts';
import type { ContainerId, EngineMark, Fence } from '../../src/domain/ids.ts';
import { instrument } from '../../src/observability/instrument.ts';
import { createMetrics, type MetricsOptions } from '../../src/observability/metrics.ts';

const about = { version: '1.2.3', deployment: 'd', store: 'redis', maxSandboxes: 100, leaseMs: 30_000 };
const readings = {
  tracked: () => 7,
  openTasks: () => 2,
  ready: () => true,
  waiting: () => 3,
  teardowns: () => ({ count: 4, oldestMs: 61_500 }),
  spares: () => new Map([['default', { ready: 1, wanted: 2 }]]),
  imagesPresent: () => true,
  followsEngine: () => false,
};
const options: MetricsOptions = { about, readings, wall: () => 1_000_000 };

const sandbox = (user: number) => sandboxId({ deployment: 'd', profile: 'p', userId: `user ${user}`, threadId: 't' });
const ours = (body: string): string[] => body.split('\n').filter((line) => line.startsWith('sandbox_broker_'));
const reconcilePass: BrokerEvent = {
  type: 'reconcile-pass',
  containers: 10,
  steps: 0,
  owned: { starting: 1, active: 2, warm: 3, destroying: 4 },
  fleet: { starting: 1, active: 5, warm: 8, destroying: 4 },
  unreadable: 3,
  suspects: { count: 2, oldestMs: 90_000 },
  durationMs: 12,
};

/** Every series there is, at least once. */
function everySeries(metrics: ReturnType<typeof createMetrics>): void {
  metrics.observe({ type: 'request', method: 'GET', route: '/v1/status', status: 200, durationMs: 5 });
  metrics.observe({ type: 'loop-pass', loop: 'idle', intervalMs: 15_000, durationMs: 5, lagMs: 1 });
  metrics.storeCall('renew', 'ok', 1);
  metrics.engineCall('list', 'ok', 1);
}

test('[H-09] series do not grow with users, threads or sandboxes, and carry no id', async () => {
  const metrics = createMetrics(options);
  const lines: string[][] = [];
  for (let user = 0; user < 300; user += 1) {
    const about = { sandbox: sandbox(user), fence: user as Fence, container: null };
    metrics.observe({ type: 'acquired', origin: 'created', durationMs: 5, ...about });
    metrics.observe({ type: 'acquire-failed', code: 'sandbox_not_ready', message: 'm', durationMs: 5, ...about });
    metrics.observe({ type: 'removed', reason: 'idle', durationMs: 5, ...about });
    metrics.observe({ type: 'request', method: 'POST', route: '/v1/sandboxes', status: 201, durationMs: 5 });
    if (user === 0 || user === 299) lines.push(ours((await metrics.render()).body));
  }
  expect(lines[1]).toHaveLength(lines[0]!.length);
  expect(lines[1]!.join('\n')).not.toContain(sandbox(299));
  expect(lines[1]).toContain('sandbox_broker_removals_total{reason="idle",outcome="removed"} 300');
});

test('what a replica owns is told by state, what it believes to hold beside it', async () => {
  const metrics = createMetrics(options);
  metrics.observe(reconcilePass);
  const { contentType, body } = await metrics.render();
  expect(contentType).toMatch(/^text\/plain/);
  expect(ours(body)).toEqual(
    expect.arrayContaining([
      'sandbox_broker_sandboxes_owned{state="warm"} 3',
      'sandbox_broker_leases_tracked 7',
      'sandbox_broker_background_tasks 2',
      'sandbox_broker_ready 1',
      'sandbox_broker_capacity_waiting 3',
      'sandbox_broker_teardowns_open 4',
      'sandbox_broker_teardown_oldest_open_seconds 61.5',
      'sandbox_broker_engine_events_followed 0',
      'sandbox_broker_build_info{version="1.2.3",deployment="d",store="redis"} 1',
      'sandbox_broker_lease_duration_seconds 30',
    ]),
  );
});
test('[H-09] what is about the whole fleet is called so, and every such number says that it is no part of a sum', async () => {
  const metrics = createMetrics(options);
  metrics.observe(reconcilePass);
  const { body } = await metrics.render();
  expect(ours(body)).toEqual(
    expect.arrayContaining([
      'sandbox_broker_fleet_sandboxes{state="active"} 5',
      'sandbox_broker_fleet_containers 10',
      'sandbox_broker_fleet_records_unreadable 3',
      'sandbox_broker_fleet_suspects 2',
      'sandbox_broker_fleet_suspect_oldest_seconds 90',
      'sandbox_broker_fleet_capacity_max 100',
      'sandbox_broker_fleet_spares_ready{profile="default"} 1',
      'sandbox_broker_fleet_spares_wanted{profile="default"} 2',
    ]),
  );
  const helps = body.split('\n').filter((line) => line.startsWith('# HELP sandbox_broker_'));
  for (const help of helps) expect(help.includes('take the max')).toBe(help.includes('_fleet_'));
});

test('every event that counts is counted under what it was about', async () => {
  const metrics = createMetrics(options);
  const told = { sandbox: sandbox(1), fence: 1 as Fence, container: null };
  const [container, mark] = ['c' as ContainerId, 'm' as EngineMark];
  const events: BrokerEvent[] = [
    { type: 'acquired', origin: 'spare', durationMs: 20, ...told },
    { type: 'acquire-failed', code: 'capacity_exhausted', message: 'm', durationMs: 300, ...told },
    { type: 'started', createMs: 6, startMs: 200, readyMs: 4_000, ...told },
    { type: 'start-failed', code: 'image_unavailable', message: 'm', ...told },
    { type: 'image-pull', image: 'i', progress: 'begins' },
    { type: 'image-pull', image: 'i', progress: '1 of 2 layers, 0.1 of 0.2 MB' },
    { type: 'image-pull', image: 'i', progress: 'failed' },
    { type: 'spare-added', profile: 'default', container },
    { type: 'spare-failed', profile: 'default', code: null, message: 'm' },
    { type: 'removal-stopped', reason: 'idle', because: 'named', ...told },
    { type: 'removal-failed', reason: 'expired', message: 'm', ...told },
    { type: 'removed', reason: 'stray', durationMs: 150, ...told },
    { type: 'adopted', ...told },
    { type: 'ended', reason: 'r', exitCode: 1, ...told },
    { type: 'lease-lost', ...told },
    { type: 'lease-reasserted', ...told },
    { type: 'engine-mismatch', expected: mark, seen: mark },
    { type: 'renewal-pass', renewed: 9, durationMs: 4 },
    { type: 'loop-failed', loop: 'idle', code: null, message: 'm', again: false },
    { type: 'loop-pass', loop: 'spares', intervalMs: 30_000, durationMs: 40, lagMs: 7 },
  ];
  for (const event of events) metrics.observe(event);
  const lines = ours((await metrics.render()).body);
  expect(lines).toEqual(
    expect.arrayContaining(
      [
        'acquire_duration_seconds_bucket{le="0.025",outcome="ready",origin="spare"} 1',
        'acquire_duration_seconds_sum{outcome="failed",origin="none"} 0.3',
        'acquire_failures_total{code="capacity_exhausted"} 1',
        'start_step_duration_seconds_sum{step="create"} 0.006',
        'start_step_duration_seconds_sum{step="start"} 0.2',
        'start_step_duration_seconds_sum{step="ready"} 4',
        'start_failures_total{code="image_unavailable"} 1',
        'image_pulls_total{outcome="begun"} 1',
        'image_pulls_total{outcome="done"} 0',
        'image_pulls_total{outcome="failed"} 1',
        'spare_starts_total{profile="default",outcome="ready"} 1',
        'spare_starts_total{profile="default",outcome="failed"} 1',
        'removals_total{reason="idle",outcome="stopped"} 1',
        'removals_total{reason="expired",outcome="failed"} 1',
        'removals_total{reason="stray",outcome="removed"} 1',
        'removal_duration_seconds_sum{reason="stray"} 0.15',
        'adoptions_total 1',
        'endings_total 1',
        'leases_lost_total 1',
        'leases_reasserted_total 1',
        'engine_mismatches_total 1',
        'lease_renewals_total 9',
        'loop_failures_total{loop="idle"} 1',
        'loop_pass_duration_seconds_sum{loop="spares"} 0.04',
        'loop_lag_seconds{loop="spares"} 0.007',
        'loop_interval_seconds{loop="spares"} 30',
        'loop_last_success_timestamp_seconds{loop="spares"} 1000',
        'loop_last_success_timestamp_seconds{loop="renewal"} 1000',
      ].map((line) => `sandbox_broker_${line}`),
    ),
  );
});

test('a dependency is up as its last answer says: the engine by what asks all of it, not by a call for one container', async () => {
  const metrics = createMetrics(options);
  const up = async (dependency: string): Promise<string> => {
    const start = `sandbox_broker_dependency_up{dependency="${dependency}"} `;
    return ours((await metrics.render()).body)
      .find((line) => line.startsWith(start))!
      .slice(start.length);
  };
  expect([await up('store'), await up('engine'), await up('images')]).toEqual(['0', '0', '1']);
  metrics.storeCall('take', 'record_unreadable', 1);
  metrics.engineCall('remove', 'ok', 1);
  expect([await up('store'), await up('engine')]).toEqual(['1', '0']);
  metrics.engineCall('list', 'ok', 1);
  metrics.engineCall('remove', 'runtime_timeout', 10_000);
  metrics.storeCall('renew', 'store_unavailable', 2_000);
  expect([await up('store'), await up('engine')]).toEqual(['0', '1']);
  metrics.engineCall('list', 'runtime_timeout', 10_000);
  metrics.storeCall('renew', 'ok', 1);
  expect([await up('store'), await up('engine')]).toEqual(['1', '0']);
  const lines = ours((await metrics.render()).body);
  expect(lines).toContain('sandbox_broker_store_call_failures_total{call="renew",code="store_unavailable"} 1');
  expect(lines).toContain('sandbox_broker_store_call_duration_seconds_sum{call="renew"} 2.001');
  expect(lines).toContain('sandbox_broker_engine_call_failures_total{call="list",code="runtime_timeout"} 1');
});

test('docs/metrics.md tells every metric with its type and its labels, and none that is not there', async () => {
  const metrics = createMetrics(options);
  everySeries(metrics);
  metrics.storeCall('renew', 'store_unavailable', 1);
  metrics.engineCall('list', 'runtime_timeout', 1);
  const { body } = await metrics.render();
  const page = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z0-9_]+)` \| (\w+) \|(.*?)\| (.+?) \| (.+?) \|$/gm)];
  const labelsOf = (cell: string): string[] =>
    cell
      .split(';')
      .flatMap((part) => [...(part.split(':')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
  const told = rows.map(([, name = '', type, labels = '']) => `${name} ${type} ${labelsOf(labels).sort().join(' ')}`);
  expect(told.filter((line) => !line.startsWith('nodejs_')).sort()).toEqual(seriesOf(body).sort());
  const names = [...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(rows.map(([, name]) => name).sort()).toEqual(names.sort());
});

/** Name, type and labels of every metric but Node's own, some of which appear only after a while. */
function seriesOf(body: string): string[] {
  return [...body.matchAll(/^# TYPE (\S+) (\w+)$/gm)]
    .filter(([, name = '']) => !name.startsWith('nodejs_'))
    .map(([, name = '', type]) => {
      const sample = body.split('\n').find((line) => new RegExp(`^${name}(_bucket)?[{ ]`).test(line)) ?? '';
      const labels = [...sample.matchAll(/[{,](\w+)="/g)]
        .map(([, label = '']) => label)
        .filter((label) => label !== 'le');
      return `${name} ${type} ${labels.sort().join(' ')}`;
    });
}

test('a port that is timed answers and fails as it did, and every call is told with its outcome', async () => {
  const told: string[] = [];
  class Port {
    readonly name = 'port';
    readonly #secret = 41;
    async add(to: number): Promise<number> {
      return this.#secret + to;
    }
    async fail(): Promise<never> {
      throw new BrokerError('store_unavailable', 'no');
    }
    async crash(): Promise<never> {
      throw new Error('no');
    }
  }
  const port = instrument(
    new Port(),
    () => 0,
    (call, outcome) => told.push(`${call} ${outcome}`),
  );
  expect(port.name).toBe('port');
  expect(await port.add(1)).toBe(42);
  await expect(port.fail()).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(port.crash()).rejects.toThrow('no');
  expect(told).toEqual(['add ok', 'fail store_unavailable', 'crash internal_error']);
});
