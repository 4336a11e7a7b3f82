import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
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
    try {
      await server.start();
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
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

  /** `waits`: until it answers; without, it may still be loading. */
  async start(waits = true): Promise<void> {
    const own = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.directory, '--daemonize', 'no'];
    this.#process = spawn('redis-server', [...own, ...this.#args], { stdio: 'ignore' });
    if (waits) await until(() => answers(this.port), 'the Redis server to answer');
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
    const client = new Redis(this.url, { maxRetriesPerRequest: 1 });
    client.on('error', () => {});
    return client;
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
  let refused = '';
  client.on('error', (error) => {
    refused = error.message;
  });
  try {
    await client.connect();
    return true;
  } catch {
    return refused.includes('NOAUTH');
  } finally {
    client.disconnect();
  }
}

/** Stands between a client and a server, and can keep replies back or cut connections. */
export class RedisProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<{ readonly inner: Socket; readonly outer: Socket }>();
  #delayMs = 0;
  #swallows = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(targetPort: number): Promise<RedisProxy> {
    const server = createServer();
    const proxy = new RedisProxy(server);
    server.on('connection', (inner) => proxy.#connect(inner, targetPort));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}/0`;
  }

  /** Requests go through; replies are dropped, or come so much later. */
  replies(how: { readonly swallowed?: boolean; readonly delayMs?: number }): void {
    this.#swallows = how.swallowed ?? false;
    this.#delayMs = how.delayMs ?? 0;
  }

  /** Cuts every connection with a reset. */
  reset(): void {
    for (const { inner, outer } of this.#pairs) {
      inner.resetAndDestroy();
      outer.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #connect(inner: Socket, port: number): void {
    const outer = connect(port, '127.0.0.1');
    const pair = { inner, outer };
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      inner.destroy();
      outer.destroy();
    };
    for (const socket of [inner, outer]) socket.on('error', end).on('close', end);
    inner.on('data', (data) => outer.write(data));
    outer.on('data', (data) => {
      if (this.#swallows) return;
      if (this.#delayMs === 0) inner.write(data);
      else setTimeout(() => inner.destroyed || inner.write(data), this.#delayMs);
    });
  }
}
