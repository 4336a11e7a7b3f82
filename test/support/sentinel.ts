import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort, RedisServer, until } from './redis.ts';

const GROUP = 'leases';

/** A sentinel that alone watches a master and the one replica that is made for it here. */
export class Sentinel implements AsyncDisposable {
  /** Where a store finds the group: as in the settings of a broker. */
  readonly settings: { readonly sentinels: { host: string; port: number }[]; readonly sentinelName: string };
  readonly replica: RedisServer;
  readonly #master: RedisServer;
  readonly #resources: AsyncDisposableStack;

  private constructor(master: RedisServer, replica: RedisServer, port: number, resources: AsyncDisposableStack) {
    this.settings = { sentinels: [{ host: '127.0.0.1', port }], sentinelName: GROUP };
    this.replica = replica;
    this.#master = master;
    this.#resources = resources;
  }

  /** Returns once the replica is in step and the sentinel knows it. */
  static async watch(master: RedisServer): Promise<Sentinel> {
    await using resources = new AsyncDisposableStack();
    const replica = resources.use(await RedisServer.start());
    const admin = replica.client();
    resources.defer(() => admin.disconnect());
    await admin.replicaof('127.0.0.1', String(master.port));
    const port = await startSentinel(master, resources);
    await until(async () => /master_link_status:up/.test(await admin.info('replication')), 'the replica');
    const sentinel = new Redis(port, '127.0.0.1');
    resources.defer(() => sentinel.disconnect());
    await until(
      async () => ((await sentinel.call('SENTINEL', 'replicas', GROUP)) as unknown[]).length === 1,
      'the sentinel to know it',
    );
    return new Sentinel(master, replica, port, resources.move());
  }

  /** The replica has all that was written so far, and gets nothing that is written from now on. */
  async detach(): Promise<void> {
    await this.#ask(this.#master, async (master) => {
      await master.set('detach', '');
      await until(async () => (await master.wait(1, 1_000)) === 1, 'the replica to be in step');
      this.replica.signal('SIGSTOP');
      await master.call('CLIENT', 'KILL', 'TYPE', 'replica');
      await until(async () => /connected_slaves:0\b/.test(await master.info('replication')), 'the cut');
    });
  }

  /** The master dies with all that its replica does not have, and the replica can be promoted. */
  async lose(): Promise<void> {
    const info = await this.#ask(this.#master, (master) => master.info('replication'));
    if (!/connected_slaves:0\b/.test(info)) throw new Error('the replica is not detached');
    await this.#master.stop();
    this.replica.signal('SIGCONT');
  }

  /** Whether the replica is the master now. */
  promoted(): Promise<boolean> {
    return this.#ask(this.replica, async (replica) => /role:master/.test(await replica.info('replication')));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }

  async #ask<T>(server: RedisServer, work: (client: Redis) => Promise<T>): Promise<T> {
    const client = server.client();
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  }
}

async function startSentinel(master: RedisServer, resources: AsyncDisposableStack): Promise<number> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'leases-sentinel-'));
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${GROUP} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${GROUP} 500`,
    `sentinel failover-timeout ${GROUP} 3000`,
  ];
  await writeFile(join(directory, 'sentinel.conf'), lines.join('\n'));
  const child: ChildProcess = spawn('redis-server', [join(directory, 'sentinel.conf'), '--sentinel'], {
    stdio: 'ignore',
    cwd: directory,
  });
  resources.defer(async () => {
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  });
  return port;
}
