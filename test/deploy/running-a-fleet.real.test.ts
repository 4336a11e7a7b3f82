import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { leftovers, sweep } from '../support/docker.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

afterAll(async () => {
  await sweep('fleet');
  const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
  const keys = await client.keys('fleet:*');
  if (keys.length > 0) await client.del(...keys);
  client.disconnect();
  expect(await leftovers('fleet')).toEqual({ containers: [], networks: [], volumes: [] });
});

/** The commands of a page, in their order. */
function commandsOf(page: string): string {
  const blocks = [...readFileSync(resolve(root, page), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)];
  return blocks.map(([, block]) => block).join('\n');
}

test('[T-07] [H-09] the commands of docs/running-a-fleet.md do what the page says (real)', {
  timeout: 120_000,
}, async () => {
  const trap = "trap 'kill -KILL $(jobs -p) 2>/dev/null || true; rm -rf .run/fleet' EXIT\n";
  const script = `set -eu\n${trap}${commandsOf('docs/running-a-fleet.md')}`;
  const { stdout } = await run('bash', ['-c', script], { cwd: root, timeout: 100_000 });
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('{"'))
    .map((line) => JSON.parse(line));
  const [first, second, status, listed] = lines;
  expect(second).toMatchObject({ id: first.id, url: first.url, origin: 'reused' });
  expect(second.owner).not.toBe(first.owner);
  expect(status.sandboxes).toMatchObject({ active: 1 });
  expect(listed.items).toHaveLength(1);
  expect(listed.items[0]).toMatchObject({ id: first.id, url: first.url, holds: 2 });
  expect(listed.items[0].owner).not.toBe(second.owner);
  // What promtool prints of Prometheus: the series, and its value at a moment.
  const told = (series: RegExp, value: number) => new RegExp(`^\\S*${series.source} => ${value} @`, 'm');
  expect(stdout).toMatch(told(/\{\}/, 3));
  expect(stdout).toMatch(told(/up\{instance="127\.0\.0\.1:9082".*\}/, 0));
  expect(stdout).toMatch(told(/sandboxes_owned\{instance="127\.0\.0\.1:908[13]".*\}/, 1));
  expect(stdout).toMatch(told(/\{\}/, 1));
  expect(stdout).toMatch(told(/ALERTS\{.*alertstate="pending".*instance="127\.0\.0\.1:9082".*\}/, 1));
  expect(stdout).toMatch(/^204$/m);
});

test('[S-02] three replicas restarted in turn under load: no request fails that was sent once more, nothing is lost (real)', {
  timeout: 120_000,
}, async () => {
  const { stdout } = await run(process.execPath, ['scripts/rolling-restart.ts', '--seconds', '15', '--rate', '5'], {
    cwd: root,
    timeout: 110_000,
  });
  expect(JSON.parse(stdout)).toMatchObject({ failed: 0, lost: 0, containersLeft: 0 });
});
