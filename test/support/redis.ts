import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';

export interface RedisServerOptions {
  /** Further lines of the command line, like `--requirepass x`. */
  readonly args?: readonly string[];
  /** Keeps its data in `dump.rdb` of its folder, when told to. */
  readonly persistent?: boolean;
}

/** A redis-server of a test's own: a free port, a folder of its own, stopped by its process id. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly directory: string;
  readonly #args: readonly string[];
  #process: ChildProcess | null = null;

  private constructor(port: number, directory: string, args: readonly string[]) {
    this.port = port;
    this.directory = directory;
    this.#args = args;
  }

  static async start({ args = [], persistent = false }: RedisServerOptions = {}): Promise<RedisServer> {
    const directory = await mkdtemp(join(tmpdir(), 'leases-redis-'));
    const saving = persistent ? ['--dbfilename', 'dump.rdb'] : [];
    const server = new RedisServer(await freePort(), directory, [
      ...saving,
      '--save',
      '',
      '--appendonly',
      'no',
      ...args,
    ]);
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error('the server does not run');
    return pid;
  }

  async start(): Promise<void> {
    const own = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.directory, '--daemonize', 'no'];
    this.#process = spawn('redis-server', [...own, ...this.#args], { stdio: 'ignore' });
    await until(async () => await answers(this.port), 'the Redis server to answer');
  }

  /** Ends it at once, without saving. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.pid, name);
  }

  /** A plain client, for looking behind the store's back. */
  client(): Redis {
    return new Redis(this.url, { maxRetriesPerRequest: 1 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Asks every few milliseconds whether something outside this process has come about. */
export async function until(holds: () => Promise<boolean> | boolean, what: string, timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await pause(10);
  }
}

/** True if a server answers there at all, also when it asks for a password. */
async function answers(port: number): Promise<boolean> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    return /NOAUTH|WRONGPASS/.test(String(error));
  } finally {
    client.disconnect();
  }
}
