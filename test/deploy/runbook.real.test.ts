import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { BrokerClient, person } from '../support/broker-client.ts';
import { eventually } from '../support/docker.ts';
import { useFleets } from '../support/fleet.ts';

/** The runbook's commands, as they stand there, against a replica, its Redis and the engine. */

const root = resolve(import.meta.dirname, '../..');
const runbook = readFileSync(resolve(root, 'docs/runbook.md'), 'utf8');
const KEY = 'runbook-key';
const { openFleet } = useFleets();

/** Every block of shell, without its place in a list. */
const BLOCKS = [...runbook.matchAll(/^( *)```sh\n(.*?)^ *```$/gms)].map(([, indent = '', text = '']) =>
  text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
);
const blockWith = (text: string): string => {
  const found = BLOCKS.filter((block) => block.includes(text));
  expect(found, text).toHaveLength(1);
  return found[0]!;
};
/** One of the commands that stand within a sentence. */
const inline = (command: string): string => {
  expect(runbook.replaceAll(/\s+/g, ' ').includes(`\`${command}\``), command).toBe(true);
  return command;
};

function shell(script: string, env: Readonly<Record<string, string>>): Promise<{ out: string; err: string }> {
  return new Promise((done, fail) => {
    const child = spawn('bash', ['-c', `set -u\n${script}`], { cwd: root, env: { ...process.env, ...env } });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', fail).on('close', () => done({ out, err }));
  });
}

test('every block of the runbook is shell', async () => {
  expect(BLOCKS.length).toBeGreaterThan(5);
  for (const block of BLOCKS) expect((await shell(`bash -n <<'END'\n${block}\nEND`, {})).err).toBe('');
});

test('what the runbook says to type works: status, records, containers, why, what leaks, and how to clear the keys (real)', {
  timeout: 90_000,
}, async () => {
  await using fleet = await openFleet({ settings: { auth: { keys: [{ name: 'operator', key: KEY }] } } });
  const { deployment, redis } = fleet;
  const { api } = await fleet.join();
  await using client = new BrokerClient(api.url, KEY);
  const { body: sandbox } = await client.acquire(person('ada'));
  const here = blockWith('redis-cli -u "$REDIS_URL"')
    .replace('http://127.0.0.1:8080', api.url)
    .replace('BROKER_API_KEY=…', `BROKER_API_KEY=${KEY}`)
    .replace('DEPLOYMENT=default', `DEPLOYMENT=${deployment}`);
  const functions = blockWith('api() {');
  const env = { REDIS_URL: redis.url, ID: sandbox.id, HEALTH_URL: `${api.url}/healthz` };
  /** What it prints; nothing may go wrong on the way. */
  const run = async (script: string): Promise<string> => {
    const { out, err } = await shell(`${here}\n${functions}\n${script}`, env);
    expect(err, script).toBe('');
    return out;
  };

  const look = await run(blockWith('api /v1/status'));
  expect(look).toContain(`"deployment":"${deployment}"`);
  expect(look).toContain('"because":null');
  expect(look).toContain(`"id":"${sandbox.id}"`);
  expect(look).toMatch(new RegExp(`^${deployment}-${sandbox.id} Up`, 'm'));
  expect(Number(look.trim().split('\n').at(-1))).toBeGreaterThan(5);

  const one = await run(blockWith('npm run why -- $ID').replace('npm run why --', 'node scripts/why.ts'));
  expect(one).toContain(`sandbox ${sandbox.id}`);
  expect(one).toContain('"items"');
  expect(one).toMatch(/^state\nready$/m);
  expect(await run('readyz env')).toContain('"ready":true');
  expect(await run(inline('redis ping'))).toBe('PONG\n');
  expect(await run(inline('redis config get maxmemory-policy'))).toContain('maxmemory-policy\n');
  await run(`${inline('redis slowlog get')}; ${inline('redis info persistence')}`);
  expect(await run(inline("api '/v1/sandboxes?userId=<user>'").replace('<user>', 'user%20ada'))).toContain(sandbox.id);

  // What has a container and no record, in the moment after its record is gone.
  const leaking = blockWith('comm -23').replace('^sandbox-', `^${deployment}-`);
  expect(await run(leaking)).toBe('');
  const record = `sandbox-broker:{${deployment}}:sandbox:${sandbox.id}`;
  expect(await run(`redis del '${record}' >/dev/null; ${leaking}`)).toBe(`${sandbox.id}\n`);

  // Owners write back what they remember, with every key gone.
  await run(`${inline(`keys | sed 's/.*/del "&"/' | redis`)} >/dev/null`);
  await eventually(async () => (await run('record $ID')).includes('ready'), 20_000);
  expect((await client.get(sandbox.id)).body).toMatchObject({ state: 'active', url: sandbox.url });
  await run(inline('api /v1/sandboxes/<id> -X DELETE').replace('<id>', '$ID'));
  await eventually(async () => (await run('containers')) === '', 20_000);
});
