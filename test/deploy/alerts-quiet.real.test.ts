import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { eventually } from '../support/docker.ts';
import { acquired, useFleets } from '../support/fleet.ts';
import { PrometheusServer } from '../support/prometheus.ts';

const alerts = resolve(import.meta.dirname, '../../helm/sandbox-broker/files/alerts.yaml');
const { openFleet } = useFleets();
const LIMIT_MS = 30_000;
/** Prometheus evaluates every second. */
const QUIET_S = 5;

/** The rules as they are, but that none of them waits: what is so for one moment fires. */
async function impatientRules(folder: string): Promise<string> {
  const text = (await readFile(alerts, 'utf8')).replaceAll(/^ +for: \w+\n/gm, '');
  const path = join(folder, 'alerts.yaml');
  await writeFile(path, text);
  return path;
}

test('[H-09] a fleet that is well fires no alert, not even for a moment; a rolling restart none but that the old replica is gone (real)', {
  timeout: 90_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'alerts-quiet-'));
  try {
    await using fleet = await openFleet({ settings: { profiles: { default: { spares: 1 } } } });
    const replicas = [await fleet.join(), await fleet.join()];
    for (const [n, replica] of [...replicas, ...replicas].entries()) await acquired(replica, person(`${n}`));
    const targets = replicas.map(({ api }) => new URL(api.url).host);
    await using prometheus = await PrometheusServer.start(targets, await impatientRules(folder));
    const is = (expr: string, value: number): Promise<boolean> =>
      eventually(async () => (await prometheus.value(expr)) === value, LIMIT_MS);
    /** What fired in the last seconds. */
    const fired = async (seconds: number): Promise<string[]> => {
      const past = await prometheus.query(`count by (alertname) (max_over_time(ALERTS[${seconds}s]))`);
      return past.map(({ metric }) => metric.alertname ?? '').sort();
    };

    expect(await is('max(sandbox_broker_fleet_spares_ready)', 1)).toBe(true);
    expect(await is('sum(sandbox_broker_sandboxes_owned{state="active"})', 4)).toBe(true);
    expect((await prometheus.rules()).length).toBeGreaterThan(20);
    // Several looks at a fleet that is well, one after the other.
    expect(await eventually(async () => (await fired(QUIET_S)).length === 0, LIMIT_MS), `${await fired(2)}`).toBe(true);

    const [old, other] = replicas;
    const began = Date.now();
    old!.signal('SIGTERM');
    await old!.ended();
    expect(await is(`sum(sandbox_broker_sandboxes_owned{instance="${targets[1]}"})`, 4)).toBe(true);
    expect(await is(`sum(ALERTS{instance="${targets[0]}"})`, 1)).toBe(true);
    expect(await fired(Math.ceil((Date.now() - began) / 1_000))).toEqual(['SandboxBrokerReplicaDown']);
    expect((await other!.api.status()).body).toMatchObject({ ready: true });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
