import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * The demo itself, started by demo.sh with an engine and the sandbox image at hand: `demo.ts FOLDER [--once]`. Starts a
 * broker, drives it over HTTP as a gateway would, and at the end, whichever it is, stops it and removes what it made.
 */
const DEPLOYMENT = 'demo';
const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 30_000;

const [folder = '.run/demo', ...flags] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function call(method: string, url: string, body?: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.any([interrupted.signal, AbortSignal.timeout(90_000)]),
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  return { status: response.status, body: isJson ? JSON.parse(text) : text };
}

function expectStatus({ status, body }: Answer, ...wanted: readonly number[]): void {
  if (wanted.includes(status)) return;
  const { code, detail } = body as { code?: string; detail?: string };
  throw new Error(`answered ${status}${code === undefined ? '' : ` ${code}: ${detail}`}`);
}

/** Does one step and prints what came of it and how long it took. */
async function step<T>(name: string, act: () => Promise<{ readonly says: string; readonly value: T }>): Promise<T> {
  const from = performance.now();
  const { says, value } = await act().catch((error: Error) => {
    throw interrupted.signal.aborted ? error : new Error(`${name}: ${error.message}`, { cause: error });
  });
  const took = `${Math.round(performance.now() - from)} ms`;
  process.stdout.write(`  ${name.padEnd(26)}${says.padEnd(62)}${took.padStart(9)}\n`);
  return value;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A broker in a process of its own, in a group of its own, so that a Ctrl-C leaves its end to this script. */
class Broker {
  readonly url: string;
  readonly log = join(folder, 'broker.log');
  readonly #process: ChildProcess;

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `deployment: ${DEPLOYMENT}\nserver: { host: 127.0.0.1, port: ${port} }\nstore: { type: memory }\n`,
    );
    const { REDIS_URL: _, ...env } = process.env;
    const output = openSync(this.log, 'w');
    this.#process = spawn(process.execPath, ['src/main.ts', '--config', config], {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    writeFileSync(join(folder, 'broker.pid'), `${this.#process.pid}\n`);
  }

  get ended(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** True once it had the deployment to itself: with the memory store a second broker does not get that far. */
  get listened(): boolean {
    return readFileSync(this.log, 'utf8').includes('"listening"');
  }

  async ready(): Promise<void> {
    const from = performance.now();
    let because = 'it does not answer';
    while (performance.now() - from < READY_WITHIN_MS) {
      if (this.ended) throw new Error('it ended while starting');
      const answer = await call('GET', `${this.url}/readyz`).catch((error: Error) => {
        if (interrupted.signal.aborted) throw error;
        return null;
      });
      if (answer?.status === 200) return;
      because = (answer?.body as { because?: string } | undefined)?.because ?? because;
      await pause(50, undefined, { signal: interrupted.signal });
    }
    throw new Error(`not ready after ${READY_WITHIN_MS / 1000} s: ${because}`);
  }

  /** Resolves when the process has ended by itself, or at the interruption. */
  async over(): Promise<void> {
    if (!this.ended) await once(this.#process, 'exit', { signal: interrupted.signal });
  }

  async stop(): Promise<void> {
    if (this.ended) return;
    const exit = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    const late = setTimeout(() => this.#process.kill('SIGKILL'), STOP_WITHIN_MS);
    await exit;
    clearTimeout(late);
  }

  lastLines(): string {
    return readFileSync(this.log, 'utf8')
      .trimEnd()
      .split('\n')
      .slice(-8)
      .map((line) => `    ${line}\n`)
      .join('');
  }
}

interface Sandbox {
  readonly id: string;
  readonly url: string;
  readonly holdId: string;
  readonly origin: string;
}

/** One sandbox's life, as a gateway sees it. */
async function life(url: string): Promise<void> {
  const identity = { userId: 'demo-user', threadId: 'demo-thread' };
  const acquire = async (): Promise<{ says: string; value: Sandbox }> => {
    const answer = await call('POST', `${url}/v1/sandboxes`, identity);
    expectStatus(answer, 200, 201);
    const value = answer.body as Sandbox;
    return { says: `${answer.status} ${value.origin}, ${value.url}`, value };
  };
  const first = await step('acquire', acquire);
  await step('run a command in it', async () => {
    const command = 'python3 -c "print(sum(range(1001)))"';
    const answer = await call('POST', `${first.url}/v1/shell/exec`, { command });
    expectStatus(answer, 200);
    const { stdout, exitCode } = answer.body as { stdout: string; exitCode: number };
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
    return { says: `${command}: ${stdout.trim()}`, value: undefined };
  });
  const file = `${first.url}/v1/files?path=/tmp/note.txt`;
  await step('write a file', async () => {
    const response = await fetch(file, { method: 'PUT', body: 'kept between turns', signal: interrupted.signal });
    if (response.status !== 200) throw new Error(`answered ${response.status}`);
    return { says: '/tmp/note.txt', value: await response.arrayBuffer() };
  });
  await step('release', async () => {
    const answer = await call('POST', `${url}/v1/sandboxes/${first.id}/release`, { holdId: first.holdId });
    expectStatus(answer, 200);
    return { says: `200 ${(answer.body as { state: string }).state}`, value: undefined };
  });
  const second = await step('acquire again', acquire);
  if (second.url !== first.url || second.origin !== 'reclaimed') throw new Error('another container was handed out');
  await step('read the file', async () => {
    const { status, body } = await call('GET', file);
    if (status !== 200 || body !== 'kept between turns') throw new Error(`answered ${status}`);
    return { says: `${body}`, value: undefined };
  });
  await step('destroy', async () => {
    const answer = await call('DELETE', `${url}/v1/sandboxes/${first.id}`);
    expectStatus(answer, 204);
    return { says: '204', value: undefined };
  });
}

function farewell({ url, log }: Broker): void {
  writeFileSync(join(folder, 'shown'), '');
  process.stdout.write(`
The broker stays at ${url} until Ctrl-C here (or: kill ${process.ppid}). To go on:

  acquire   curl -s ${url}/v1/sandboxes -H 'content-type: application/json' -d '{"userId":"me","threadId":"one"}'
  status    curl -s ${url}/v1/status
  docs      ${url}/docs
  log       tail -f ${relative(root, log)}

`);
}

async function main(): Promise<void> {
  process.stdout.write('\n');
  const broker = new Broker(await freePort());
  try {
    await step('broker', async () => {
      await broker.ready();
      return { says: broker.url, value: undefined };
    });
    await life(broker.url);
    if (flags.includes('--once')) return;
    farewell(broker);
    await broker.over();
    throw new Error('the broker ended by itself');
  } catch (error) {
    if (interrupted.signal.aborted) process.stdout.write('\nstopping\n');
    else {
      process.stderr.write(`\n${(error as Error).message}\nThe broker's last lines:\n${broker.lastLines()}`);
      process.exitCode = 1;
    }
  } finally {
    const { listened } = broker;
    await broker.stop();
    // One that never came up holds nothing, and the deployment may be another demo's.
    if (listened)
      execFileSync(process.execPath, ['scripts/engine.ts', 'purge', DEPLOYMENT], { cwd: root, stdio: 'inherit' });
  }
}

await main();
