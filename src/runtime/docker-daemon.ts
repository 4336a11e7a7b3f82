import Docker from 'dockerode';
import { BrokerError, messageOf } from '../domain/errors.ts';
import { withDeadline } from './deadline.ts';

export type DockerConnection =
  | { readonly socketPath: string }
  | {
      readonly host: string;
      readonly port: number;
      readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | null;
    };

export interface DockerDaemonOptions {
  readonly connection: DockerConnection;
  /** Deadline of one call, in milliseconds. */
  readonly timeoutMs: number;
}

/** What the daemon said instead of doing what it was asked. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/**
 * The one place from which the daemon is called. Each call races against a deadline of its own, because the client's
 * promise never settles when the daemon dies in the middle of a reply; a call that lost the race is aborted where
 * the client can do that, and the daemon may carry it out all the same.
 */
export class DockerDaemon {
  readonly timeoutMs: number;
  readonly #docker: Docker;
  readonly #address: string;
  readonly #closed = new AbortController();

  constructor({ connection, timeoutMs }: DockerDaemonOptions) {
    this.timeoutMs = timeoutMs;
    this.#docker = new Docker(clientOptions(connection));
    this.#address = 'socketPath' in connection ? connection.socketPath : `${connection.host}:${connection.port}`;
  }

  /**
   * Calls the daemon. `what` names the call and its container in messages. Rejects with `runtime_timeout` past
   * `limitMs`, and with `runtime_unavailable` when there is no connection or the daemon refuses: `refusalOf` then
   * tells how.
   */
  async call<T>(
    what: string,
    work: (docker: Docker, signal: AbortSignal) => Promise<T>,
    limitMs: number = this.timeoutMs,
  ): Promise<T> {
    return this.begin(what, work, Math.min(limitMs, this.timeoutMs));
  }

  /** As `call`, but for the beginning of what may take longer than one call: `limitMs` alone counts. */
  async begin<T>(what: string, work: (docker: Docker, signal: AbortSignal) => Promise<T>, limitMs: number): Promise<T> {
    this.#closed.signal.throwIfAborted();
    try {
      return await withDeadline(
        limitMs,
        (signal) => work(this.#docker, signal),
        () =>
          new BrokerError(
            'runtime_timeout',
            `the container engine did not answer within ${Math.round(limitMs)} ms: ${what}`,
          ),
        this.#closed.signal,
      );
    } catch (error) {
      throw error instanceof BrokerError ? error : unavailable(what, error, this.#address);
    }
  }

  /** Aborts when the daemon is not to be called any more. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Rejects the calls in flight and all later ones with `runtime_unavailable`. Idle connections end by themselves. */
  close(): void {
    this.#closed.abort(new BrokerError('runtime_unavailable', 'the container runtime is closed'));
  }
}

/** How the daemon refused the call that ended in this error; null when it did not answer at all. */
export function refusalOf(error: unknown): Refusal | null {
  const cause = error instanceof BrokerError ? error.cause : error;
  return cause instanceof EngineRefusal ? cause : null;
}

class EngineRefusal extends Error implements Refusal {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'EngineRefusal';
    this.status = status;
  }
}

function unavailable(what: string, error: unknown, address: string): BrokerError {
  const { statusCode, json } = error as { statusCode?: number; json?: { message?: string } | null };
  if (typeof statusCode !== 'number') {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
    return new BrokerError(
      'runtime_unavailable',
      `no container engine answers at ${address} (${reason}): start it, or point runtime.docker or DOCKER_HOST at one; ${what}`,
      { cause: error },
    );
  }
  const words = typeof json?.message === 'string' ? json.message.trim() : messageOf(error).trim();
  return new BrokerError('runtime_unavailable', `the container engine refused (${statusCode}, ${words}): ${what}`, {
    cause: new EngineRefusal(statusCode, words),
  });
}

/** Every part is said, also the missing ones: the client would fill them in from the environment. */
function clientOptions(connection: DockerConnection): Docker.DockerOptions {
  const none = { socketPath: undefined, host: undefined, port: undefined, protocol: undefined, timeout: undefined };
  const noTls = { ca: undefined, cert: undefined, key: undefined };
  if ('socketPath' in connection) return { ...none, ...noTls, protocol: 'http', socketPath: connection.socketPath };
  const { host, port, tls } = connection;
  return { ...none, ...(tls ?? noTls), host, port, protocol: tls ? 'https' : 'http' };
}
