import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { MAX_WAIT_MS } from '../../src/http/schemas.ts';
import { call, listen, openApp } from './harness.ts';

const ACQUIRE = { method: 'POST', path: '/v1/sandboxes', body: JSON.stringify({ userId: 'u', threadId: 't' }) };
const ACQUIRE_HEAD = 'POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
const until = (condition: () => boolean) => vi.waitFor(() => expect(condition()).toBe(true), { interval: 5 });

const DROP_EVERY_MS = 50;

/** Sends bytes, then `drop` again and again, and gives all that comes back until the other side closes. */
function raw(port: number, bytes: string, drop = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const dropping = setInterval(() => socket.writable && socket.write(drop), DROP_EVERY_MS);
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject).on('close', () => {
      clearInterval(dropping);
      resolve(text);
    });
  });
}

test('[A-12] a body that was sent is not a client that hung up', async () => {
  const h = openApp();
  const gate = Promise.withResolvers<void>();
  h.service.gate = gate.promise;
  const answer = call(await listen(h.app), ACQUIRE);
  await until(() => h.service.caller !== null);
  await call((h.app.server.address() as { port: number }).port, { path: '/healthz' });
  expect(h.service.caller?.gone.aborted).toBe(false);
  gate.resolve();
  expect((await answer).status).toBe(201);
  expect(h.service.caller?.gone.aborted).toBe(false);
});

test('[A-12] a client that hangs up is told to the service, logged once, and what came of it is audited', async () => {
  const h = openApp();
  const gate = Promise.withResolvers<void>();
  h.service.gate = gate.promise;
  const hangUp = new AbortController();
  const answer = call(await listen(h.app), { ...ACQUIRE, abort: hangUp.signal }).catch((error: Error) => error.name);
  await until(() => h.service.caller !== null);
  hangUp.abort();
  expect(await answer).toBe('AbortError');
  await until(() => h.service.caller?.gone.aborted === true);
  gate.resolve();
  await until(() => h.events.length === 1);
  expect(h.events[0]).toMatchObject({ type: 'audit', action: 'acquire', outcome: 'created' });
  expect(h.lines.filter((line) => line.msg === 'request')).toMatchObject([{ hungUp: true, status: null }]);
  expect(h.lines.filter((line) => Number(line.level) >= 40)).toEqual([]);
});

test('[A-12] a wait that ends because the client left is no unexpected error', async () => {
  const h = openApp();
  const waiting = Promise.withResolvers<AbortSignal>();
  h.service.acquire = (_request, { gone }) => {
    waiting.resolve(gone);
    return new Promise((_resolve, reject) => gone.addEventListener('abort', () => reject(gone.reason)));
  };
  const hangUp = new AbortController();
  const answer = call(await listen(h.app), { ...ACQUIRE, abort: hangUp.signal }).catch((error: Error) => error.name);
  await waiting.promise;
  hangUp.abort();
  await answer;
  await until(() => h.events.length === 1);
  expect(h.lines.filter((line) => Number(line.level) >= 40)).toEqual([]);
});

test('[S-01] while draining, readiness is 503 at once, health stays, and new calls are sent away', async () => {
  const h = openApp([{ name: 'gateway', key: 'k' }]);
  const port = await listen(h.app);
  h.draining = true;
  const ready = await call(port, { path: '/readyz' });
  expect([ready.status, JSON.parse(ready.body)]).toEqual([503, { ready: false, because: 'shutting down' }]);
  expect((await call(port, { path: '/healthz' })).status).toBe(200);
  const refused = await call(port, { ...ACQUIRE, headers: { 'x-api-key': 'k' } });
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([503, 'shutting_down']);
  expect(refused.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
  expect(h.service.asked).toEqual([]);
});

test('[S-01] close lets a request in flight finish, and its kept-alive connection does not hold it up', async () => {
  const h = openApp();
  const gate = Promise.withResolvers<void>();
  h.service.gate = gate.promise;
  const answer = call(await listen(h.app), { ...ACQUIRE, headers: { connection: 'keep-alive' } });
  await until(() => h.service.caller !== null);
  h.draining = true;
  const closed = h.app.close();
  gate.resolve();
  const { status, headers } = await answer;
  expect([status, headers.connection]).toEqual([201, 'close']);
  await closed;
  expect(h.app.server.listening).toBe(false);
});

test('[S-01] a request that has not arrived as a whole does not hold close up; one that has is answered first', async () => {
  const h = openApp();
  const gate = Promise.withResolvers<void>();
  h.service.gate = gate.promise;
  const port = await listen(h.app);
  const arrived = call(port, ACQUIRE);
  await until(() => h.service.caller !== null);
  const cut = raw(port, `${ACQUIRE_HEAD}content-length: 99\r\n\r\n{`);
  await new Promise<void>((resolve) => h.app.server.once('request', () => resolve()));
  h.draining = true;
  const closed = h.app.close();
  await until(() => !h.app.server.listening);
  gate.resolve();
  expect((await arrived).status).toBe(201);
  expect(await cut).toBe('');
  await closed;
  expect(h.service.asked).toHaveLength(1);
});

test('[H-06] health looks at nothing; readiness says what the service says', async () => {
  const h = openApp();
  h.service.readiness = () => new Promise(() => {});
  expect((await h.app.inject('/healthz')).json()).toEqual({ status: 'ok' });
  expect(h.service.asked).toEqual([]);
  const bad = { ok: false, message: 'Command timed out' };
  const latched = { ...h.service.ready, dependencies: { ...h.service.ready.dependencies, store: bad } };
  h.service.readiness = async () => latched;
  const answer = await h.app.inject('/readyz');
  expect([answer.statusCode, answer.json()]).toEqual([200, latched]);
  h.service.readiness = async () => ({ ...latched, ready: false, because: 'no image' });
  expect((await h.app.inject('/readyz')).statusCode).toBe(503);
});

const malformed = [
  'NOT HTTP AT ALL\r\n\r\n',
  'GET /healthz HTTP/1.1\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: a\r\n\r\n',
  `GET /healthz HTTP/1.1\r\nhost: x\r\nlarge: ${'x'.repeat(20_000)}\r\n\r\n`,
];
test.each(malformed)('[H-02] what is not readable HTTP is refused with a problem body: %.30j', async (bytes) => {
  const h = openApp();
  const answer = await raw(await listen(h.app), bytes);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  if (bytes.includes('host') || bytes.startsWith('NOT')) {
    expect(answer).toMatch(/content-type: application\/problem\+json/);
    expect(JSON.parse(answer.slice(answer.indexOf('{')))).toMatchObject({ status: 400, code: 'invalid_request' });
  }
});

test('[H-02] a body that is cut off is nobody\u2019s error', async () => {
  const h = openApp();
  const port = await listen(h.app);
  const socket = connect(port, '127.0.0.1');
  socket.write(
    'POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{',
  );
  await new Promise<void>((resolve) => h.app.server.once('request', () => resolve()));
  socket.destroy();
  await until(() => h.lines.some((line) => line.msg === 'request'));
  await until(() => h.events.length === 1);
  expect(h.events).toMatchObject([{ outcome: 'invalid_request' }]);
  expect(h.lines.filter((line) => Number(line.level) >= 40)).toEqual([]);
  expect(h.service.asked).toEqual([]);
});

const slow: readonly [what: string, begins: string, drop: string][] = [
  ['headers', 'GET /healthz HTTP/1.1\r\nhost: x\r\n', 'x: y\r\n'],
  ['a body', `${ACQUIRE_HEAD}content-length: 60000\r\n\r\n`, ' '],
  ['a body in chunks', `${ACQUIRE_HEAD}transfer-encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
];
test.each(slow)(
  '[H-02] %s sent drop by drop: the request is given up in time, with a problem body',
  async (_what, begins, drop) => {
    const timeoutMs = 600;
    const h = openApp([], '0.0.0', { requestTimeoutMs: timeoutMs });
    const port = await listen(h.app);
    const began = performance.now();
    const answer = await raw(port, begins, drop);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf('{')))).toMatchObject({ status: 400, code: 'invalid_request' });
    // With Node's own defaults it would be a minute, and looked at every 30 seconds.
    expect(performance.now() - began).toBeLessThan(10 * timeoutMs);
    expect(h.service.asked).toEqual([]);
    expect(h.lines.filter((line) => Number(line.level) >= 40)).toEqual([]);
  },
);

test('[H-02] a connection on which nothing was sent ends without a word', async () => {
  const h = openApp([], '0.0.0', { requestTimeoutMs: 100 });
  expect(await raw(await listen(h.app), '')).toBe('');
});

test('[H-02] a connection whose client does not read its answer is not kept for ever, and no wait is cut short', async () => {
  const { app } = openApp();
  await listen(app);
  expect(app.server.timeout).toBeGreaterThan(MAX_WAIT_MS);
  expect(app.server.timeout).toBeLessThan(2 * MAX_WAIT_MS);
});

test('[H-02] an expectation that nobody knows is no reason to refuse a request', async () => {
  const h = openApp();
  const port = await listen(h.app);
  const headers = { expect: 'something-else', 'x-request-id': 'mine' };
  const answer = await call(port, { path: '/healthz', headers });
  expect([answer.status, answer.body, answer.headers['x-request-id']]).toEqual([200, '{"status":"ok"}', 'mine']);
  const refused = await call(port, { method: 'POST', path: '/v1/sandboxes', headers, body: '{}' });
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([400, 'invalid_request']);
});

test('[H-01] HEAD is answered like GET, without a body', async () => {
  const h = openApp([{ name: 'gateway', key: 'k' }]);
  const port = await listen(h.app);
  const head = async (path: string, headers = {}) => {
    const answer = await call(port, { method: 'HEAD', path, headers });
    expect(answer.body).toBe('');
    return answer.status;
  };
  expect([await head('/healthz'), await head('/readyz'), await head('/metrics')]).toEqual([200, 200, 200]);
  expect(await head('/v1/status')).toBe(401);
  expect(await head('/v1/status', { 'x-api-key': 'k' })).toBe(200);
  expect(await head('/nothing')).toBe(404);
});
