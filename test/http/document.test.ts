import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BrokerError, ERROR_CODES, type ErrorCode } from '../../src/domain/errors.ts';
import { documentText } from '../../src/http/docs.ts';
import { RESERVED_CODES } from '../../src/http/problems.ts';
import { HOLD_ID, SANDBOX, SANDBOX_ID } from '../fakes/fake-service.ts';
import { Conformance, fetchDocument } from './conformance.ts';
import { openApp } from './harness.ts';

const ROOT = join(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const PREVIOUS = { endedAt: 1_796_069_125_644, reason: 'exited', exitCode: 137, logTail: 'last words' };
const HOLD = { holdId: String(HOLD_ID) };
const ACQUIRE = { userId: 'user-42', threadId: 'thread-7' };

const CALLS = [
  { method: 'POST', path: '/v1/sandboxes', payload: ACQUIRE },
  { method: 'GET', path: '/v1/sandboxes' },
  { method: 'GET', path: '/v1/sandboxes/{id}' },
  { method: 'DELETE', path: '/v1/sandboxes/{id}' },
  { method: 'POST', path: '/v1/sandboxes/{id}/keepalive', payload: HOLD },
  { method: 'POST', path: '/v1/sandboxes/{id}/release', payload: HOLD },
  { method: 'GET', path: '/v1/sandboxes/{id}/events' },
  { method: 'GET', path: '/v1/sandboxes/{id}/logs' },
  { method: 'GET', path: '/v1/status' },
  { method: 'GET', path: '/healthz' },
  { method: 'GET', path: '/readyz' },
  { method: 'GET', path: '/metrics' },
  { method: 'GET', path: '/openapi.json' },
] as const;

test('[H-01] [H-08] every listed answer of every call can be had, and matches the published document', async () => {
  const h = openApp();
  await h.app.ready();
  const conformance = new Conformance(await fetchDocument(h.app));
  const ask = async ({ method, path, ...rest }: (typeof CALLS)[number]) => {
    const answer = await h.app.inject({ method, url: path.replace('{id}', SANDBOX_ID), ...rest });
    conformance.check(method, path, answer);
    return answer;
  };
  const askAll = async () => {
    for (const each of CALLS) await ask(each);
  };

  await askAll();
  const previous = PREVIOUS;
  for (const origin of ['created', 'spare', 'discovered', 'reclaimed', 'reused'] as const) {
    h.service.outcome = { kind: 'ready', sandbox: SANDBOX, hold: HOLD_ID, origin, previous };
    const answer = await ask(CALLS[0]);
    expect(answer.statusCode).toBe(origin === 'created' ? 201 : 200);
    expect(answer.json()).toMatchObject({
      holdId: String(HOLD_ID),
      origin,
      createdAt: '2026-11-30T20:05:25.644Z',
      previous: { endedAt: '2026-11-30T20:05:25.644Z', exitCode: 137 },
    });
  }
  h.service.outcome = { kind: 'starting', sandbox: { ...SANDBOX, state: 'starting', url: null }, retryAfterMs: 1500 };
  expect((await ask(CALLS[0])).headers).toMatchObject({ 'retry-after': '2', location: `/v1/sandboxes/${SANDBOX_ID}` });
  h.service.destroyed = 'removing';
  await askAll();
  h.service.ready = { ...h.service.ready, ready: false, because: 'no engine' };
  await askAll();

  const operations = (await fetchDocument(h.app)).paths;
  h.metrics = () => Promise.reject(new Error('no metrics'));
  const provoked = new Set<ErrorCode>();
  for (const each of CALLS) {
    const responses = operations[each.path]?.[each.method.toLowerCase()]?.responses ?? {};
    for (const code of ERROR_CODES) {
      if (!Object.values(responses).some(({ description }) => description.includes(`\`${code}\``))) continue;
      h.service.failure = new BrokerError(code, 'as told', {
        previous: code === 'sandbox_not_found' ? previous : null,
      });
      expect((await ask(each)).json().code).toBe(code);
      provoked.add(code);
    }
  }
  expect([...conformance.seen].sort()).toEqual(conformance.listed().sort());
  const elsewhere = ['route_not_found', ...RESERVED_CODES];
  expect([...provoked].sort()).toEqual(ERROR_CODES.filter((code) => !elsewhere.includes(code)).sort());
});

test('[H-01] the answers while shutting down match the document too', async () => {
  const h = openApp();
  await h.app.ready();
  const conformance = new Conformance(await fetchDocument(h.app));
  h.draining = true;
  for (const { method, path, ...rest } of CALLS) {
    conformance.check(method, path, await h.app.inject({ method, url: path.replace('{id}', SANDBOX_ID), ...rest }));
  }
});

test('[H-01] openapi/openapi.json is what the code generates', async () => {
  const { app } = openApp([], version);
  await app.ready();
  expect(readFileSync(join(ROOT, 'openapi/openapi.json'), 'utf8')).toBe(documentText(app));
});

test('[H-01] the document is OpenAPI 3.1, names each route once, and refers to nothing outside', async () => {
  const { app } = openApp([], version);
  await app.ready();
  const document = await fetchDocument(app);
  expect(document.openapi).toBe('3.1.0');
  expect(document.info.version).toBe(version);
  expect(Object.keys(document.paths).sort()).toEqual([...new Set(CALLS.map(({ path }) => path))].sort());
  const ids = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
  expect(new Set(ids).size).toBe(CALLS.length);
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1]);
  expect(refs.filter((ref) => !ref?.startsWith('#/components/schemas/'))).toEqual([]);
});

test('the readable document is served whole from here', async () => {
  const { app } = openApp([{ name: 'gateway', key: 'secret' }]);
  const page = await app.inject('/docs');
  expect(page.statusCode).toBe(200);
  const assets = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  expect(assets.length).toBeGreaterThan(3);
  for (const asset of assets) {
    const { pathname, origin } = new URL(asset, 'http://here/docs/');
    expect(origin).toBe('http://here');
    expect((await app.inject(pathname)).statusCode, asset).toBe(200);
  }
  expect(page.body).not.toMatch(/https?:\/\//);
});

test('[H-01] the page to read may load from this broker only, by the scheme that it came by', async () => {
  const { app } = openApp();
  const page = await app.inject('/docs');
  expect(page.statusCode).toBe(200);
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toMatch(/(^|; )default-src 'self'(;|$)/);
  expect(policy).not.toMatch(/https?:|upgrade-insecure-requests|unsafe|\*|\.io/);
  const parts = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part = '']) => part);
  expect(parts.length).toBeGreaterThan(3);
  for (const part of parts)
    expect((await app.inject(new URL(part, 'http://x/docs').pathname)).statusCode, part).toBe(200);
});
