import { expect, test, vi } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { KeyRing } from '../../src/http/auth.ts';
import { SANDBOX_ID } from '../fakes/fake-service.ts';
import { openApp } from './harness.ts';

const { timingSafeEqual } = vi.hoisted(() => ({ timingSafeEqual: { calls: 0 } }));
vi.mock('node:crypto', async (original) => {
  const real = await original<typeof import('node:crypto')>();
  const counted = (a: Buffer, b: Buffer) => {
    timingSafeEqual.calls += 1;
    return real.timingSafeEqual(a, b);
  };
  return { ...real, timingSafeEqual: counted };
});

const KEYS = [
  { name: 'gateway', key: 'KEY-gateway-1' },
  { name: 'operator', key: 'KEY-operator-2' },
];
const GUARDED = [
  { method: 'POST', url: '/v1/sandboxes', payload: { userId: 'u', threadId: 't' } },
  { method: 'GET', url: '/v1/sandboxes' },
  { method: 'GET', url: `/v1/sandboxes/${SANDBOX_ID}` },
  { method: 'DELETE', url: `/v1/sandboxes/${SANDBOX_ID}` },
  { method: 'POST', url: `/v1/sandboxes/${SANDBOX_ID}/keepalive`, payload: { holdId: '1' } },
  { method: 'POST', url: `/v1/sandboxes/${SANDBOX_ID}/release`, payload: { holdId: '1' } },
  { method: 'GET', url: `/v1/sandboxes/${SANDBOX_ID}/events` },
  { method: 'GET', url: `/v1/sandboxes/${SANDBOX_ID}/logs` },
  { method: 'GET', url: '/v1/status' },
] as const;
const OPEN = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'];

const wrong: Record<string, string>[] = [
  {},
  { authorization: 'Bearer wrong' },
  { authorization: 'Bearer ' },
  { authorization: 'KEY-gateway-1' },
  { authorization: 'Basic KEY-gateway-1' },
  { 'x-api-key': 'wrong' },
  { 'x-api-key': '' },
  { 'x-api-key': 'KEY-gateway-12' },
  { 'x-api-key': 'KEY-gateway-1, KEY-gateway-1' },
  { 'x-api-key': 'gateway' },
];
test.each(wrong)('[H-05] without a right key everything under /v1 is 401: %j', async (headers) => {
  const h = openApp(KEYS);
  for (const request of [...GUARDED, { method: 'GET', url: '/v1/nothing' } as const]) {
    const answer = await h.app.inject({ ...request, headers });
    expect([answer.statusCode, answer.json().code]).toEqual([401, 'unauthorized']);
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer /);
  }
  expect(h.service.asked).toEqual([]);
  expect(h.events).toHaveLength(GUARDED.length + 1);
  expect(h.events[0]).toMatchObject({ type: 'audit', action: 'acquire', outcome: 'unauthorized', key: null });
});

const right: Record<string, string>[] = [
  { authorization: 'Bearer KEY-operator-2' },
  { authorization: 'bearer  KEY-operator-2' },
  { 'x-api-key': 'KEY-operator-2' },
  { authorization: 'Basic abc', 'x-api-key': 'KEY-operator-2' },
  { authorization: 'Bearer of-the-mesh', 'x-api-key': 'KEY-operator-2' },
];
test.each(right)('[H-05] a right key in either header opens everything, under its name: %j', async (headers) => {
  const h = openApp(KEYS);
  for (const request of GUARDED) expect((await h.app.inject({ ...request, headers })).statusCode).toBeLessThan(300);
  expect((await h.app.inject({ url: '/v1/nothing', headers })).statusCode).toBe(404);
  expect(h.lines.map((line) => line.key)).toEqual(Array(GUARDED.length + 1).fill('operator'));
  expect(h.events.map((event) => event.type === 'audit' && event.key)).toEqual(['operator', 'operator', 'operator']);
});

test('[H-05] health, readiness, metrics and documents are open', async () => {
  const h = openApp(KEYS);
  for (const url of OPEN) expect((await h.app.inject(url)).statusCode, url).toBe(200);
});

test('[H-05] without any key configured everything is open', async () => {
  const h = openApp();
  for (const request of GUARDED) expect((await h.app.inject(request)).statusCode).toBeLessThan(300);
});

test('[H-05] a key is compared with every known one, in constant time over hashes', () => {
  const ring = new KeyRing({ keys: KEYS });
  for (const key of ['KEY-gateway-1', 'KEY-operator-2', 'x', 'x'.repeat(5000)]) {
    timingSafeEqual.calls = 0;
    try {
      ring.identify({ 'x-api-key': key });
    } catch (error) {
      expect(error).toBeInstanceOf(BrokerError);
    }
    expect(timingSafeEqual.calls).toBe(KEYS.length);
  }
});

test('[R-15] keys, right or wrong, are in no log line, event or answer', async () => {
  const h = openApp(KEYS);
  const seen: string[] = [];
  for (const key of ['KEY-gateway-1', 'KEY-guess']) {
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
      for (const request of [...GUARDED, { method: 'GET', url: `/v1/sandboxes?key=${key}` } as const]) {
        seen.push((await h.app.inject({ ...request, headers })).body);
      }
    }
  }
  h.service.failure = new Error('boom');
  seen.push((await h.app.inject({ url: '/v1/status', headers: { 'x-api-key': 'KEY-gateway-1' } })).body);
  expect(h.lines.length).toBeGreaterThan(30);
  expect(JSON.stringify([h.lines, h.events, seen])).not.toContain('KEY-');
});
