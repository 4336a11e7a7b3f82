import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DockerConnection } from '../../src/runtime/docker-daemon.ts';

export type Behaviour =
  /** The request is taken and never answered. */
  | { readonly kind: 'hang' }
  /** An answer of the test's own. */
  | { readonly kind: 'reply'; readonly status: number; readonly body?: unknown }
  /** Headers and the beginning of a body, then silence (`hang`) or a closed connection (`die`). */
  | { readonly kind: 'half'; readonly next: 'hang' | 'die' }
  /** Passed on to the real daemon, whose answer is thrown away with the connection. */
  | { readonly kind: 'lose' }
  /** Answered by a function, which gets the raw response. */
  | { readonly kind: 'act'; readonly act: (response: ServerResponse, path: string) => void };

interface Rule {
  readonly match: RegExp;
  readonly behaviour: Behaviour;
  left: number;
}

/**
 * A container engine's daemon that misbehaves on demand, on a socket of its own. Requests that no rule matches go to
 * the real daemon behind it, if there is one; otherwise they are answered with 404.
 */
export class HangingDaemon implements AsyncDisposable {
  readonly connection: { readonly socketPath: string };
  /** `METHOD path` of every request, in order. */
  readonly requests: string[] = [];
  readonly #folder: string;
  readonly #server: Server;
  readonly #behind: DockerConnection | null;
  readonly #sockets = new Set<Socket>();
  #rules: Rule[] = [];

  private constructor(folder: string, behind: DockerConnection | null) {
    this.#folder = folder;
    this.#behind = behind;
    this.connection = { socketPath: join(folder, 'docker.sock') };
    this.#server = createServer((incoming, response) => this.#answer(incoming, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async open(behind: DockerConnection | null = null): Promise<HangingDaemon> {
    const daemon = new HangingDaemon(await mkdtemp(join(tmpdir(), 'hanging-daemon-')), behind);
    await new Promise<void>((resolve) => daemon.#server.listen(daemon.connection.socketPath, resolve));
    return daemon;
  }

  /** The next `times` requests whose `METHOD path` matches are treated so. Later rules come first. */
  on(match: RegExp, behaviour: Behaviour, times = Number.POSITIVE_INFINITY): void {
    this.#rules.unshift({ match, behaviour, left: times });
  }

  /** Requests are passed on again. */
  recover(): void {
    this.#rules = [];
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  count(match: RegExp): number {
    return this.requests.filter((line) => match.test(line)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    const line = `${incoming.method} ${decodeURIComponent(incoming.url ?? '')}`;
    this.requests.push(line);
    const rule = this.#rules.find(({ match, left }) => left > 0 && match.test(line));
    if (rule === undefined) {
      this.#pass(incoming, response, false);
      return;
    }
    rule.left -= 1;
    const { behaviour } = rule;
    switch (behaviour.kind) {
      case 'hang':
        return;
      case 'reply':
        response.writeHead(behaviour.status, { 'content-type': 'application/json' });
        response.end(behaviour.body === undefined ? undefined : JSON.stringify(behaviour.body));
        return;
      case 'half':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
        response.write('[{"Id":"', () => {
          if (behaviour.next === 'die') response.destroy();
        });
        return;
      case 'lose':
        this.#pass(incoming, response, true);
        return;
      case 'act':
        behaviour.act(response, line);
    }
  }

  #pass(incoming: IncomingMessage, response: ServerResponse, lose: boolean): void {
    if (this.#behind === null) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no such thing"}');
      return;
    }
    const { url, method, headers } = incoming;
    const onward = request({ ...this.#behind, path: url, method, headers, agent: false }, (reply) => {
      if (lose) {
        reply.resume().on('end', () => response.destroy());
        return;
      }
      response.writeHead(reply.statusCode ?? 500, reply.headers);
      reply.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}
