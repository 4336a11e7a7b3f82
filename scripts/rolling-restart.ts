/**
 * Three replicas on one Redis and one engine are restarted one after the other while gateways work through them:
 * `rolling-restart.ts [--seconds 60] [--rate 20]`. Needs DOCKER_HOST (or the default socket) and REDIS_URL, and the image
 * of the default profile. Prints counts; ends with 1 if a request failed that was sent once more after a 503 or a
 * refused connection, a held sandbox was lost, or anything is left.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, rate: { type: 'string', default: '20' } },
});
const seconds = Math.min(600, Number(values.seconds));
const rate = Math.min(200, Number(values.rate));
const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379/0';
const root = join(import.meta.dirname, '..');
const deployment = `rolling-${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), 'rolling-'));
const READY_WITHIN_MS = 30_000;

interface Acquired {
  readonly id: string;
  readonly url: string;
  readonly holdId: string;
}

class Replica {
  readonly url: string;
  readonly #config: string;
  #process: ChildProcess | null = null;

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.#config = join(folder, `${port}.yaml`);
    const settings = {
      deployment,
      server: { port },
      store: { url: redis, keyPrefix: deployment },
      lease: { duration: '6s', renewInterval: '2s' },
      reconcile: { interval: '2s' },
      runtime: { docker: { namePrefix: 'rolling', timeout: '5s' } },
      log: { level: 'warn' },
    };
    writeFileSync(this.#config, JSON.stringify(settings));
  }

  async start(): Promise<void> {
    this.#process = spawn(process.execPath, ['src/main.ts', '--config', this.#config], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const until = performance.now() + READY_WITHIN_MS;
    while ((await status(`${this.url}/readyz`)) !== 200) {
      if (performance.now() > until || this.#process.exitCode !== null)
        throw new Error(`${this.url} does not become ready`);
      await pause(50);
    }
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

async function status(url: string): Promise<number> {
  return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    async (reply) => {
      await reply.arrayBuffer();
      return reply.status;
    },
    () => 0,
  );
}

const counts = { requests: 0, again: 0, failed: 0, acquires: 0, lost: 0, restarts: 0 };
const failures: string[] = [];

/** One call through a replica picked at random; sent once more, to another, after a 503 or when nobody listens. */
async function call(
  replicas: readonly Replica[],
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  counts.requests += 1;
  const order = [...replicas].sort(() => Math.random() - 0.5);
  let last = '';
  for (const [attempt, replica] of order.entries()) {
    if (attempt > 0) counts.again += attempt === 1 ? 1 : 0;
    if (attempt > 1) break;
    try {
      const reply = await fetch(replica.url + path, {
        method,
        signal: AbortSignal.timeout(60_000),
        ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      if (reply.ok) return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
      last = `${method} ${path}: ${reply.status} ${text}`;
      if (reply.status !== 503) break;
    } catch (error) {
      last = `${method} ${path}: ${String((error as { cause?: unknown }).cause ?? error)}`;
    }
  }
  counts.failed += 1;
  failures.push(last);
  throw new Error(last);
}

/** A gateway's turn: acquire, use the url, release. */
async function turn(replicas: readonly Replica[], user: string): Promise<void> {
  try {
    const { id, url, holdId } = (await call(replicas, 'POST', '/v1/sandboxes', {
      userId: user,
      threadId: 't',
    })) as unknown as Acquired;
    counts.acquires += 1;
    if ((await status(`${url}/v1/sandbox`)) !== 200) {
      counts.lost += 1;
      failures.push(`${user}: ${url} does not answer`);
    }
    await call(replicas, 'POST', `/v1/sandboxes/${id}/release`, { holdId });
  } catch {
    // counted where it happened
  }
}

async function remaining(replicas: readonly Replica[]): Promise<number> {
  const { items } = (await call(replicas, 'GET', '/v1/sandboxes?limit=100')) as unknown as { items: unknown[] };
  return items.length;
}

/** The keys that are left for good, or for as long as tombstones tell why. */
async function forgetKeys(): Promise<void> {
  const client = new Redis(redis);
  const keys = await client.keys(`${deployment}:*`);
  if (keys.length > 0) await client.del(...keys);
  client.disconnect();
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) server.close();
  return ports;
}

const replicas = (await freePorts(3)).map((port) => new Replica(port));
let exitCode = 1;
try {
  await Promise.all(replicas.map((replica) => replica.start()));
  const held = await Promise.all(
    Array.from(
      { length: 5 },
      async (_, n) =>
        (await call(replicas, 'POST', '/v1/sandboxes', { userId: `held-${n}`, threadId: 't' })) as unknown as Acquired,
    ),
  );
  const end = performance.now() + seconds * 1000;
  const turns: Promise<void>[] = [];
  const gateways = (async () => {
    for (let n = 0; performance.now() < end; n += 1) {
      turns.push(turn(replicas, `user-${n % 10}`));
      await pause(1000 / rate);
    }
  })();
  for (let n = 0; performance.now() < end - 2_000; n += 1) {
    const replica = replicas[n % replicas.length]!;
    await replica.stop();
    await replica.start();
    counts.restarts += 1;
    await pause(500);
  }
  await gateways;
  await Promise.all(turns);
  for (const { id, url, holdId } of held) {
    const view = await call(replicas, 'POST', `/v1/sandboxes/${id}/keepalive`, { holdId }).catch(() => ({ url: null }));
    if (view.url !== url || (await status(`${url}/v1/sandbox`)) !== 200) counts.lost += 1;
  }
  const { items } = (await call(replicas, 'GET', '/v1/sandboxes?limit=100')) as unknown as { items: { id: string }[] };
  await Promise.all(items.map(({ id }) => call(replicas, 'DELETE', `/v1/sandboxes/${id}`)));
  for (let tries = 0; tries < 60 && (await remaining(replicas)) > 0; tries += 1) await pause(500);
  exitCode = counts.failed === 0 && counts.lost === 0 && counts.restarts >= 3 ? 0 : 1;
} finally {
  await Promise.all(replicas.map((replica) => replica.stop()));
  rmSync(folder, { recursive: true, force: true });
  const engine = (verb: string): string =>
    execFileSync(process.execPath, ['scripts/engine.ts', verb, deployment], { cwd: root, encoding: 'utf8' });
  const left = engine('inventory')
    .split('\n')
    .filter((line) => line.startsWith('container') && line.includes('rolling-')).length;
  if (left > 0) exitCode = 1;
  engine('purge');
  await forgetKeys();
  for (const line of failures.slice(0, 10)) process.stderr.write(`  ${line}\n`);
  process.stdout.write(`${JSON.stringify({ ...counts, containersLeft: left })}\n`);
}
process.exit(exitCode);
