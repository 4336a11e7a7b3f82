import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { type App, type AppOptions, buildApp } from '../../src/http/app.ts';
import { FakeService } from '../fakes/fake-service.ts';

export interface Harness {
  readonly app: App;
  readonly service: FakeService;
  /** Audit events. */
  readonly events: BrokerEvent[];
  /** One event for each request that was answered. */
  readonly requests: BrokerEvent[];
  /** All log lines so far, at every level. */
  readonly lines: Record<string, unknown>[];
  draining: boolean;
  metrics: () => Promise<{ contentType: string; body: string }>;
}

/** The app over a service that says what it is told; closed when the test ends. */
export function openApp(
  keys: { name: string; key: string }[] = [],
  version = '0.0.0',
  changes: Pick<AppOptions, 'requestTimeoutMs'> = {},
): Harness {
  const service = new FakeService();
  const events: BrokerEvent[] = [];
  const requests: BrokerEvent[] = [];
  const lines: Record<string, unknown>[] = [];
  let count = 0;
  const harness = {
    service,
    events,
    requests,
    lines,
    draining: false,
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: 'up 1\n' }),
  };
  const app = buildApp({
    service,
    auth: { keys },
    logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    emit: (event) => void (event.type === 'request' ? requests : events).push(event),
    metrics: { render: () => harness.metrics() },
    version,
    newId: () => `made-${++count}`,
    draining: () => harness.draining,
    ...changes,
  });
  onTestFinished(() => app.close());
  return Object.assign(harness, { app });
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Listens on a free port of loopback; gives the port. */
export async function listen(app: App): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** One request over a real socket. `abort` hangs up. */
export function call(
  port: number,
  options: { method?: string; path: string; headers?: Record<string, string>; body?: string; abort?: AbortSignal },
): Promise<Reply> {
  const { method = 'GET', path, headers = {}, body, abort } = options;
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: '127.0.0.1', method, path, headers: { ...type, ...headers }, ...(abort ? { signal: abort } : {}) },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
