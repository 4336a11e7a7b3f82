import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'undici';
import type { AcquiredBody, ProblemBody, ReadinessBody, SandboxBody } from '../../src/http/schemas.ts';

export interface Answer<T> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** What the call gives when it succeeds, or a problem; null for an empty body. */
  readonly body: T & Partial<ProblemBody>;
}

export interface Person {
  readonly userId: string;
  readonly threadId: string;
}

/** Somebody who asks for a sandbox; `who` tells one from another. */
export const person = (who: string): Person => ({ userId: `user ${who}`, threadId: 'thread' });

export interface AcquireWish {
  readonly profile?: string;
  readonly waitMs?: number;
}

export interface StatusBody extends ReadinessBody {
  readonly owner: string;
  readonly deployment: string;
  readonly store: string;
  readonly sandboxes: Readonly<Record<'starting' | 'active' | 'warm' | 'destroying', number>>;
  readonly capacity: { readonly max: number; readonly used: number; readonly waiting: number };
}

/** A gateway's side of the API: every call gives the answer, whatever its status. Connections are kept alive. */
export class BrokerClient implements AsyncDisposable {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ bodyTimeout: 0, headersTimeout: 0 });

  /** `key`: sent with every call of the API. */
  constructor(url: string, key: string | null = null) {
    this.url = url;
    this.#headers = key === null ? {} : { authorization: `Bearer ${key}` };
  }

  acquire(who: Person, wish: AcquireWish = {}, signal?: AbortSignal): Promise<Answer<AcquiredBody>> {
    return this.call('POST', '/v1/sandboxes', { ...who, ...wish }, signal);
  }

  keepalive(id: string, holdId: string): Promise<Answer<SandboxBody>> {
    return this.call('POST', `/v1/sandboxes/${id}/keepalive`, { holdId });
  }

  release({ id, holdId }: Pick<AcquiredBody, 'id' | 'holdId'>): Promise<Answer<SandboxBody>> {
    return this.call('POST', `/v1/sandboxes/${id}/release`, { holdId });
  }

  destroy(id: string): Promise<Answer<null>> {
    return this.call('DELETE', `/v1/sandboxes/${id}`);
  }

  get(id: string): Promise<Answer<SandboxBody>> {
    return this.call('GET', `/v1/sandboxes/${id}`);
  }

  list(query: Record<string, string> = {}): Promise<Answer<{ items: SandboxBody[]; nextCursor: string | null }>> {
    return this.call('GET', `/v1/sandboxes?${new URLSearchParams(query)}`);
  }

  status(): Promise<Answer<StatusBody>> {
    return this.call('GET', '/v1/status');
  }

  healthz(): Promise<Answer<{ status: string }>> {
    return this.call('GET', '/healthz');
  }

  readyz(): Promise<Answer<ReadinessBody>> {
    return this.call('GET', '/readyz');
  }

  /** Each series by name and labels, as it is written. Rejects whatever is no success. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const { statusCode, body } = await request(`${this.url}/metrics`, { dispatcher: this.#agent });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`/metrics answered ${statusCode}: ${text}`);
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => {
        const space = line.lastIndexOf(' ');
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }),
    );
  }

  async call<T>(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: object,
    signal?: AbortSignal,
  ): Promise<Answer<T>> {
    const reply = await request(`${this.url}${path}`, {
      method,
      dispatcher: this.#agent,
      ...(signal === undefined ? {} : { signal }),
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.body.text();
    const parsed = (text === '' ? null : JSON.parse(text)) as T & Partial<ProblemBody>;
    return { status: reply.statusCode, headers: reply.headers, body: parsed };
  }

  /** Ends all connections, also those with a request in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}
