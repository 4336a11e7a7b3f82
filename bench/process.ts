import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Pool } from 'undici';
import type { AcquireOutcome } from '../src/service/api.ts';
import type { Ports } from './server.ts';
import { brokerYaml, type ServerSettings } from './settings.ts';

const FOLDER = import.meta.dirname;
const READY_MS = 60_000;

/** The body of an acquire that was answered with a sandbox. */
export interface Acquired {
  readonly id: string;
  readonly url: string;
  readonly holdId: string;
  readonly origin: string;
}

/** A broker in a process of its own, with the floor beside it, and a client's connections to both. */
export class MeasuredServer implements AsyncDisposable {
  readonly deployment: string;
  readonly broker: Pool;
  readonly floor: Pool;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ports: Ports, deployment: string, connections: number) {
    this.#child = child;
    this.deployment = deployment;
    const pool = (port: number): Pool => new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
    this.broker = pool(ports.broker);
    this.floor = pool(ports.floor);
  }

  /** Resolves once it is ready. */
  static async start(settings: ServerSettings, connections = 8): Promise<MeasuredServer> {
    const child = fork(join(FOLDER, 'server.ts'), [brokerYaml(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the measured broker ended at its start')));
    ended.catch(() => undefined);
    const [ports] = (await Promise.race([once(child, 'message'), ended])) as [Ports];
    const server = new MeasuredServer(child, ports, settings.deployment, connections);
    const until = performance.now() + READY_MS;
    while ((await server.call('GET', '/readyz')).status !== 200) {
      if (performance.now() > until) throw new Error('the measured broker did not become ready');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return server;
  }

  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object, pool = this.broker) {
    const reply = await pool.request({
      method,
      path,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const text = await reply.body.text();
    return { status: reply.statusCode, body: (text === '' ? null : JSON.parse(text)) as T };
  }

  async acquire(userId: string, threadId = 'bench'): Promise<Acquired> {
    const { status, body } = await this.call<Acquired>('POST', '/v1/sandboxes', { userId, threadId, waitMs: 120_000 });
    if (status !== 200 && status !== 201) throw new Error(`acquire: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  async release({ id, holdId }: Acquired): Promise<void> {
    const { status } = await this.call('POST', `/v1/sandboxes/${id}/release`, { holdId });
    if (status !== 200) throw new Error(`release: ${status}`);
  }

  /** Waits for its end, also when it goes on after the first answer. */
  async destroy(id: string): Promise<void> {
    while ((await this.call('DELETE', `/v1/sandboxes/${id}`)).status !== 204) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** What the floor answers from now on. */
  async answerWith(answer: AcquireOutcome): Promise<void> {
    this.#child.send({ answer });
    await once(this.#child, 'message');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.broker.destroy(), this.floor.destroy()]);
    const ended = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.send({ stop: true });
    await ended;
  }
}
