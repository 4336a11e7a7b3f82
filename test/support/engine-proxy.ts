import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DockerConnection } from '../../src/runtime/docker-daemon.ts';
import { dockerConnection } from './docker.ts';

export type FaultKind =
  /** Kept on the way: passed on when the fault is lifted, if its client still waits for it; until then it hangs. */
  | { readonly kind: 'hold' }
  /** The connection ends, and the engine never hears of it. */
  | { readonly kind: 'cut' }
  /** Answered with this status and an engine's error body. */
  | { readonly kind: 'refuse'; readonly status: number; readonly message: string };

/** One fault on the wire, from the moment it is made until it is lifted. */
export interface Fault {
  /** Resolves when the first request has run into it. */
  readonly reached: Promise<void>;
  /** How many requests have run into it. */
  readonly hits: number;
  /** How many requests it holds whose client still waits. */
  readonly held: number;
  lift(): void;
}

interface Rule extends Fault {
  readonly match: RegExp;
  readonly how: FaultKind;
  hit(): void;
  readonly waiting: Map<ServerResponse, () => void>;
}

/**
 * Stands between a broker and the real engine, on a socket of its own. Every request is passed on as it is, except
 * those that a fault is made for: they are told by `METHOD path?query`, decoded.
 */
export class EngineProxy implements AsyncDisposable {
  readonly socketPath: string;
  /** `METHOD path?query` of every request, in order. */
  readonly requests: string[] = [];
  readonly #folder: string;
  readonly #behind: DockerConnection;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #rules = new Set<Rule>();

  private constructor(folder: string, behind: DockerConnection) {
    this.#folder = folder;
    this.#behind = behind;
    this.socketPath = join(folder, 'engine.sock');
    this.#server = createServer((incoming, response) => this.#answer(incoming, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** `absent`: nothing is at its socket's path before `listen`. */
  static async open(how: 'listening' | 'absent' = 'listening', behind = dockerConnection()): Promise<EngineProxy> {
    const proxy = new EngineProxy(await mkdtemp(join(tmpdir(), 'engine-')), behind);
    if (how === 'listening') await proxy.listen();
    return proxy;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.socketPath, resolve));
  }

  /** From here on the next `times` requests that match meet the fault; the latest fault that matches counts. */
  fault(match: RegExp, how: FaultKind, times = Number.POSITIVE_INFINITY): Fault {
    const { promise: reached, resolve: hit } = Promise.withResolvers<void>();
    const waiting: Rule['waiting'] = new Map();
    let hits = 0;
    const rule: Rule = {
      match,
      how,
      reached,
      waiting,
      get hits() {
        return hits;
      },
      get held() {
        return waiting.size;
      },
      hit: () => {
        hits += 1;
        if (hits >= times) this.#rules.delete(rule);
        hit();
      },
      lift: () => {
        this.#rules.delete(rule);
        for (const pass of waiting.values()) pass();
        waiting.clear();
      },
    };
    this.#rules.add(rule);
    return rule;
  }

  /** How many requests matched so far. */
  count(match: RegExp): number {
    return this.requests.filter((line) => match.test(line)).length;
  }

  /** Breaks every connection there is, with whatever is under way on it. New ones are taken. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#rules.clear();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cutAll();
    await closed;
    await rm(this.#folder, { recursive: true, force: true });
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    const line = `${incoming.method} ${decodeURIComponent(incoming.url ?? '')}`;
    this.requests.push(line);
    const rule = [...this.#rules].findLast(({ match }) => match.test(line));
    if (rule === undefined) {
      passOn(this.#behind, incoming, response);
      return;
    }
    const { how } = rule;
    if (how.kind === 'hold') {
      rule.waiting.set(response, () => passOn(this.#behind, incoming, response));
      response.on('close', () => rule.waiting.delete(response));
    } else if (how.kind === 'cut') {
      incoming.socket.destroy();
    } else {
      response.writeHead(how.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ message: how.message }));
    }
    rule.hit();
  }
}

function passOn(behind: DockerConnection, incoming: IncomingMessage, response: ServerResponse): void {
  const { url, method, headers } = incoming;
  const onward = request({ ...behind, path: url, method, headers, agent: false }, (reply) => {
    response.writeHead(reply.statusCode ?? 500, reply.headers);
    response.flushHeaders();
    reply.pipe(response);
    reply.on('error', () => response.destroy());
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  incoming.pipe(onward);
}
