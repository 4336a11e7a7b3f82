import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { HOLD_ID, SANDBOX, SANDBOX_ID } from '../fakes/fake-service.ts';
import { openApp } from './harness.ts';

const acquire = { method: 'POST', url: '/v1/sandboxes', payload: { userId: 'user-X', threadId: 'thread-X' } } as const;
const hold = { holdId: String(HOLD_ID) };

test('a plain request id of the caller is kept, any other is replaced; every answer carries it', async () => {
  const h = openApp();
  const idOf = async (given?: string, url = '/healthz') => {
    const headers = given === undefined ? {} : { 'x-request-id': given };
    return (await h.app.inject({ url, headers })).headers['x-request-id'];
  };
  const kept = ['a', 'A-1_b.c', 'x'.repeat(128)];
  for (const id of kept) expect(await idOf(id)).toBe(id);
  const replaced = [undefined, '', 'a b', 'a\u00e9', 'a,b', 'x'.repeat(129), '"><script>'];
  for (const id of replaced) expect(await idOf(id)).toMatch(/^made-\d+$/);
  for (const url of ['/nothing', '/v1/nothing', '/docs', '/metrics', '/openapi.json', '/v1/sandboxes/%zz']) {
    expect(await idOf('mine', url), url).toBe('mine');
  }
});

test('a request is one line: the pattern of its route, never what was in the path', async () => {
  const h = openApp();
  await h.app.inject({ url: `/v1/sandboxes/${SANDBOX_ID}?secret=1`, headers: { 'x-request-id': 'r1' } });
  await h.app.inject('/healthz');
  await h.app.inject('/v1/sandboxes/nothing');
  expect(h.lines).toHaveLength(3);
  const [line, health, refused] = h.lines;
  const { durationMs, ...rest } = line ?? {};
  expect(durationMs).toBeGreaterThan(0);
  expect(rest).toMatchObject({ level: 20, requestId: 'r1', method: 'GET', route: '/v1/sandboxes/:id', status: 200 });
  expect(rest).toMatchObject({ key: null, sandbox: SANDBOX_ID });
  expect(health).toMatchObject({ level: 20, route: '/healthz' });
  expect(refused).toMatchObject({ level: 30, status: 400, code: 'invalid_request' });
});

test('[H-09] unknown paths leave no name behind: neither in log lines nor in events', async () => {
  const h = openApp();
  for (let n = 0; n < 20; n += 1) {
    await h.app.inject(`/unknown-${n}`);
    await h.app.inject(`/v1/unknown-${n}`);
    await h.app.inject({ method: 'DELETE', url: `/v1/sandboxes/unknown-${n}` });
  }
  expect(h.lines).toHaveLength(60);
  expect(new Set(h.lines.map((line) => line.route))).toEqual(new Set([null, '/v1/sandboxes/:id']));
  expect(JSON.stringify([h.lines, h.events, h.requests])).not.toContain('unknown-');
  expect(h.requests).toContainEqual(expect.objectContaining({ method: 'any', route: 'unknown', status: 404 }));
});

test('[H-09] metrics are passed on as they are, whatever the service says', async () => {
  const h = openApp();
  h.service.failure = new BrokerError('store_unavailable', 'No store.');
  h.draining = true;
  const answer = await h.app.inject('/metrics');
  expect([answer.statusCode, answer.body]).toEqual([200, 'up 1\n']);
  expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(h.service.asked).toEqual([]);
});

test('the audit names every acquire, release, destroy and refusal of these or of a keepalive, with key, sandbox and request', async () => {
  const h = openApp([{ name: 'gateway', key: 'k' }]);
  const as = (id: string) => ({ headers: { 'x-api-key': 'k', 'x-request-id': id } });
  const url = `/v1/sandboxes/${SANDBOX_ID}`;
  await h.app.inject({ ...acquire, ...as('1') });
  h.service.outcome = { kind: 'starting', sandbox: SANDBOX, retryAfterMs: 1 };
  await h.app.inject({ ...acquire, ...as('2') });
  await h.app.inject({ method: 'POST', url: `${url}/release`, payload: hold, ...as('3') });
  await h.app.inject({ method: 'DELETE', url, ...as('4') });
  h.service.failure = new BrokerError('store_unavailable', 'No store.');
  await h.app.inject({ ...acquire, ...as('5') });
  await h.app.inject({ method: 'DELETE', url, ...as('6') });
  await h.app.inject({ ...acquire, payload: {}, ...as('7') });
  await h.app.inject({ url, headers: { 'x-request-id': '8' } });
  h.service.failure = null;
  await h.app.inject({ url, ...as('9') });
  await h.app.inject({ method: 'POST', url: `${url}/keepalive`, payload: hold, ...as('10') });
  h.service.failure = new BrokerError('hold_lost', 'Its container is gone.');
  await h.app.inject({ method: 'POST', url: `${url}/keepalive`, payload: hold, ...as('11') });
  await h.app.inject({ url, ...as('12') });
  const audit = (requestId: string, action: string, outcome: string, key: string | null, sandbox: string | null) => ({
    type: 'audit',
    action,
    outcome,
    key,
    sandbox,
    requestId,
  });
  expect(h.events).toEqual([
    audit('1', 'acquire', 'created', 'gateway', SANDBOX_ID),
    audit('2', 'acquire', 'starting', 'gateway', SANDBOX_ID),
    audit('3', 'release', 'released', 'gateway', SANDBOX_ID),
    audit('4', 'destroy', 'gone', 'gateway', SANDBOX_ID),
    audit('5', 'acquire', 'store_unavailable', 'gateway', null),
    audit('6', 'destroy', 'store_unavailable', 'gateway', SANDBOX_ID),
    audit('7', 'acquire', 'invalid_request', 'gateway', null),
    audit('8', 'read', 'unauthorized', null, null),
    audit('11', 'keepalive', 'hold_lost', 'gateway', SANDBOX_ID),
  ]);
  expect(JSON.stringify([h.lines, h.events])).not.toMatch(/user-X|thread-X/);
});
