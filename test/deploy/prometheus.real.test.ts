import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { eventually, realClock } from '../support/docker.ts';
import { acquired, useFleets } from '../support/fleet.ts';
import { PrometheusServer } from '../support/prometheus.ts';

const files = resolve(import.meta.dirname, '../../helm/sandbox-broker/files');
const { openFleet } = useFleets();
const CAPACITY = 8;
const LIMIT_MS = 30_000;

/** Every expression of the dashboard, as Grafana would send it. */
function expressions(): string[] {
  const { panels } = JSON.parse(readFileSync(`${files}/dashboard.json`, 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const all = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return all.map((expr) => expr.replaceAll('$__rate_interval', '8s').replaceAll('$job', 'sandbox-broker'));
}

const targetOf = ({ api }: BrokerProcess): string => new URL(api.url).host;

/** Of everything that callers do, a little every second, until nobody watches any more. */
async function traffic(replicas: readonly BrokerProcess[], over: AbortSignal): Promise<void> {
  for (let round = 0; !over.aborted; round += 1) {
    const { api } = replicas[round % replicas.length]!;
    const again = await api.acquire(person('steady'));
    if (again.status === 200) await api.release(again.body);
    const once = await api.acquire(person(`passing ${round % 2}`));
    if (once.status <= 201) await api.destroy(once.body.id);
    const crowd = await Promise.all(
      Array.from({ length: CAPACITY + 1 }, (_, n) => api.acquire(person(`crowd ${n}`), { waitMs: 15_000 })),
    );
    for (const { status, body } of crowd) if (status <= 201) await api.release(body as AcquiredBody);
    await realClock.pause(300, over);
  }
}

function checked(text: string): Promise<string> {
  return new Promise((settle) => {
    const child = execFile('promtool', ['check', 'metrics'], (_error, stdout, stderr) => settle(`${stdout}${stderr}`));
    child.stdin?.end(text);
  });
}

test('[H-09] Prometheus scrapes three replicas: the format is right, every panel has data, every alert can be evaluated (real)', {
  timeout: 90_000,
}, async () => {
  await using fleet = await openFleet({
    settings: { capacity: { max: CAPACITY }, idle: { timeout: '1m' }, profiles: { default: { spares: 1 } } },
  });
  const replicas = await Promise.all([fleet.join(), fleet.join(), fleet.join()]);
  await using prometheus = await PrometheusServer.start(replicas.map(targetOf), `${files}/alerts.yaml`);
  const over = new AbortController();
  const load = traffic(replicas, over.signal);
  try {
    const without = new Set(expressions());
    expect(without.size).toBeGreaterThan(40);
    // A quantile is NaN while nothing happened in its time, so each has its chance.
    await eventually(async () => {
      for (const expr of without) {
        if ((await prometheus.query(expr)).some(({ value }) => Number.isFinite(value))) without.delete(expr);
      }
      return without.size === 0;
    }, LIMIT_MS).catch(() => undefined);
    expect([...without]).toEqual([]);
  } finally {
    over.abort();
    await load;
  }
  for (const { api } of replicas) expect(await checked(await (await fetch(`${api.url}/metrics`)).text())).toBe('');
  await eventually(async () => (await prometheus.rules()).every(({ health }) => health !== 'unknown'), LIMIT_MS);
  const rules = await prometheus.rules();
  expect(rules.length).toBeGreaterThan(15);
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
});

test('[T-07] [H-09] one of three replicas is killed: it is down, its sandboxes move to the peers, and each is counted once (real)', {
  timeout: 90_000,
}, async () => {
  await using fleet = await openFleet({ settings: { idle: { timeout: '1m' } } });
  const replicas = await Promise.all([fleet.join(), fleet.join(), fleet.join()]);
  const [doomed] = replicas;
  await using prometheus = await PrometheusServer.start(replicas.map(targetOf), `${files}/alerts.yaml`);
  const sum = 'sum(sandbox_broker_sandboxes_owned)';
  const before = `sandbox_broker_sandboxes_owned{state="active",instance="${targetOf(doomed!)}"}`;
  await Promise.all([0, 1, 2, 3].map((n) => acquired(doomed!, person(`${n}`))));
  await acquired(replicas[1]!, person('elsewhere'));
  const is = (expr: string, value: number): Promise<boolean> =>
    eventually(async () => (await prometheus.value(expr)) === value, LIMIT_MS);
  expect(await is('sum(up)', 3)).toBe(true);
  expect(await is(before, 4)).toBe(true);
  expect(await is(sum, 5)).toBe(true);
  expect(await is('max(sum by (instance) (sandbox_broker_fleet_sandboxes))', 5)).toBe(true);

  doomed!.signal('SIGKILL');
  await doomed!.ended();
  expect(await is(`up{instance="${targetOf(doomed!)}"}`, 0)).toBe(true);
  expect(await is('sum(sandbox_broker_adoptions_total)', 4)).toBe(true);
  expect(await is(sum, 5)).toBe(true);
  expect(await prometheus.query(before)).toEqual([]);
  const down = (await prometheus.rules()).find(({ name }) => name === 'SandboxBrokerReplicaDown');
  expect(down).toMatchObject({ health: 'ok', state: 'pending' });
});

test('[H-09] Redis goes and comes back empty: metrics are told all the time, alerts see it begin and end (real)', {
  timeout: 90_000,
}, async () => {
  await using fleet = await openFleet({ settings: { idle: { timeout: '1m' } } });
  const replicas = await Promise.all([fleet.join(), fleet.join()]);
  await using prometheus = await PrometheusServer.start(replicas.map(targetOf), `${files}/alerts.yaml`);
  const is = (expr: string, value: number): Promise<boolean> =>
    eventually(async () => (await prometheus.value(expr)) === value, LIMIT_MS);
  const stateOf = async (alert: string) => (await prometheus.rules()).find(({ name }) => name === alert)?.state;
  const states = (lease: string, store: string): Promise<boolean> =>
    eventually(
      async () =>
        (await stateOf('SandboxBrokerLeaseNotRenewed')) === lease &&
        (await stateOf('SandboxBrokerStoreDown')) === store,
      LIMIT_MS,
    );
  await Promise.all(replicas.map((replica, n) => acquired(replica, person(`${n}`))));
  const store = 'sandbox_broker_dependency_up{dependency="store"}';
  expect(await is(`sum(${store})`, 2)).toBe(true);
  expect(await is('sum(sandbox_broker_sandboxes_owned)', 2)).toBe(true);
  expect(await states('inactive', 'inactive')).toBe(true);

  await fleet.redis.stop();
  expect(await is(`sum(${store})`, 0)).toBe(true);
  expect(await states('firing', 'pending')).toBe(true);
  expect(await prometheus.value('min(up)')).toBe(1);
  expect(await prometheus.value('min(sandbox_broker_ready)')).toBe(1);
  expect(await prometheus.value('min(sandbox_broker_loop_failures_total{loop="renewal"})')).toBeGreaterThan(0);

  await fleet.redis.start();
  expect(await is('max(sandbox_broker_fleet_suspects)', 2)).toBe(true);
  expect(await states('inactive', 'inactive')).toBe(true);
  expect(await is('sum(sandbox_broker_adoptions_total)', 2)).toBe(true);
  expect(await is('max(sandbox_broker_fleet_suspects)', 0)).toBe(true);
  expect(await is('sum(sandbox_broker_sandboxes_owned)', 2)).toBe(true);
});
