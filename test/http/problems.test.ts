import { expect, test } from 'vitest';
import { BrokerError, ERROR_CODES, type ErrorCode } from '../../src/domain/errors.ts';
import { SANDBOX_ID } from '../fakes/fake-service.ts';
import { openApp } from './harness.ts';

/** Written down again on purpose: the table of the design. */
const STATUS: Record<ErrorCode, number> = {
  invalid_request: 400,
  unknown_profile: 400,
  unauthorized: 401,
  forbidden: 403,
  sandbox_not_found: 404,
  route_not_found: 404,
  hold_lost: 409,
  identity_mismatch: 409,
  foreign_container: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  internal_error: 500,
  capacity_exhausted: 429,
  user_capacity_exhausted: 429,
  rate_limited: 429,
  sandbox_start_failed: 502,
  image_unavailable: 502,
  sandbox_not_ready: 504,
  runtime_timeout: 504,
  store_unavailable: 503,
  record_unreadable: 503,
  runtime_unavailable: 503,
  sandbox_unsettled: 503,
  shutting_down: 503,
};

const acquire = { method: 'POST', url: '/v1/sandboxes', payload: { userId: 'u', threadId: 't' } } as const;

test.each(ERROR_CODES)('[H-08] %s carries its status, whether to retry, and when', async (code) => {
  const h = openApp();
  h.service.failure = new BrokerError(code, 'What happened.');
  const answer = await h.app.inject({ ...acquire, headers: { 'x-request-id': 'mine' } });
  const retryable = STATUS[code] === 429 || STATUS[code] === 503;
  expect(answer.statusCode).toBe(STATUS[code]);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['retry-after']).toBe(retryable ? '1' : undefined);
  expect(answer.json()).toEqual({
    type: `urn:problem-type:sandbox-broker:${code}`,
    title: expect.stringMatching(/\w/),
    status: STATUS[code],
    detail: code === 'internal_error' ? expect.not.stringContaining('What') : 'What happened.',
    code,
    retryable,
    requestId: 'mine',
  });
});

test.each([
  [0, '1'],
  [1, '1'],
  [1000, '1'],
  [1001, '2'],
  [29_999.5, '30'],
])('[H-08] a wait of %d ms is told as %s whole seconds', async (retryAfterMs, header) => {
  const h = openApp();
  h.service.failure = new BrokerError('capacity_exhausted', 'Full.', { retryAfterMs });
  expect((await h.app.inject(acquire)).headers['retry-after']).toBe(header);
});

test('[H-08] a 404 tells how the sandbox ended, when that is known', async () => {
  const h = openApp();
  const url = `/v1/sandboxes/${SANDBOX_ID}`;
  const previous = { endedAt: 0, reason: 'out of memory', exitCode: null, logTail: 'last' };
  h.service.failure = new BrokerError('sandbox_not_found', 'Gone.', { previous });
  expect((await h.app.inject(url)).json().previous).toEqual({ ...previous, endedAt: '1970-01-01T00:00:00.000Z' });
  h.service.failure = new BrokerError('sandbox_not_found', 'Never there.');
  expect((await h.app.inject(url)).json()).not.toHaveProperty('previous');
});

const unexpected: [string, unknown][] = [
  ['an error', new Error('SECRET')],
  ['a broken promise of nothing', undefined],
  ['text', 'SECRET'],
  ["an engine's 404", Object.assign(new Error('SECRET'), { statusCode: 404, reason: 'no such container' })],
  ['a system error', Object.assign(new Error('SECRET'), { code: 'ECONNREFUSED', status: 400 })],
];
test.each(unexpected)(
  '[H-08] %s that nobody expected is a 500 without its message, logged once',
  async (_name, thrown) => {
    const h = openApp();
    h.service.get = () => Promise.reject(thrown);
    const answer = await h.app.inject(`/v1/sandboxes/${SANDBOX_ID}`);
    expect([answer.statusCode, answer.json().code]).toEqual([500, 'internal_error']);
    expect(answer.body).not.toMatch(/SECRET|container/);
    const errors = h.lines.filter((line) => line.level === 50);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ requestId: answer.json().requestId });
  },
);

test('[R-15] of an unexpected error the log gets message and stack, not what a driver keeps on it', async () => {
  const h = openApp();
  h.service.failure = Object.assign(new Error('boom'), { command: { args: ['TOKEN-1'] } });
  await h.app.inject(acquire);
  h.service.failure = new BrokerError('internal_error', 'odd', {
    cause: Object.assign(new Error('in'), { env: 'TOKEN-2' }),
  });
  await h.app.inject(acquire);
  expect(h.lines.filter((line) => line.level === 50)).toMatchObject([{ detail: 'boom' }, { detail: 'in' }]);
  expect(JSON.stringify([h.lines, h.events])).not.toContain('TOKEN');
});

test('[H-08] what is no route, or no method of one, is 404 with a problem body, whatever is sent there', async () => {
  const h = openApp();
  const unknown = [
    ['GET', '/'],
    ['GET', '/v1'],
    ['GET', '/v1/nothing'],
    ['PUT', '/v1/sandboxes'],
    ['PATCH', `/v1/sandboxes/${SANDBOX_ID}`],
    ['OPTIONS', '/v1/sandboxes'],
    ['POST', '/healthz'],
    ['GET', '/v1/sandboxes/../../etc/passwd'],
    ['GET', '/docs/../../package.json'],
  ] as const;
  for (const [method, url] of unknown) {
    const answer = await h.app.inject({ method, url });
    expect([answer.statusCode, answer.json().code], url).toEqual([404, 'route_not_found']);
    expect(answer.headers['content-type']).toBe('application/problem+json');
  }
  const bodies = [
    ['x', 'a/b'],
    ['{"no', 'application/json'],
    ['x'.repeat(70_000), 'application/json'],
  ] as const;
  for (const url of ['/no', '/v1/no', '/healthz']) {
    for (const [payload, type] of bodies) {
      const answer = await h.app.inject({ method: 'POST', url, payload, headers: { 'content-type': type } });
      expect([answer.statusCode, answer.json().code], url).toEqual([404, 'route_not_found']);
    }
  }
});
