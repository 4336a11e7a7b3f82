import { describe, expect, test } from 'vitest';
import { HOLD_ID, SANDBOX_ID } from '../fakes/fake-service.ts';
import { call, type Harness, listen, openApp } from './harness.ts';

const SANDBOX_PATH = `/v1/sandboxes/${SANDBOX_ID}`;
const JSON_TYPE = { 'content-type': 'application/json' };

/** Sends text as it is; gives status and code, and whether the answer is a problem body of that status. */
async function post(h: Harness, url: string, payload: string | Buffer, headers: Record<string, string> = JSON_TYPE) {
  const answer = await h.app.inject({ method: 'POST', url, payload, headers });
  if (answer.statusCode < 400) return { status: answer.statusCode, code: null, detail: '' };
  expect(answer.headers['content-type']).toBe('application/problem+json');
  const { status, code, detail } = answer.json();
  expect(status).toBe(answer.statusCode);
  return { status, code, detail };
}

const acquire = (h: Harness, body: unknown) => post(h, '/v1/sandboxes', JSON.stringify(body));
const REFUSED = { status: 400, code: 'invalid_request' };
const GOOD = { userId: 'u', threadId: 't' };

describe('bodies', () => {
  const odd: [string, unknown][] = [
    ['null', null],
    ['a list', [GOOD]],
    ['text', 'text'],
    ['a number', 0],
    ['nothing in it', {}],
    ['a field missing', { userId: 'u' }],
    ['a field too many', { ...GOOD, image: 'evil' }],
    ['a prototype', JSON.parse('{"userId":"u","threadId":"t","__proto__":{"waitMs":1}}')],
    ['a null id', { ...GOOD, userId: null }],
    ['an empty id', { ...GOOD, userId: '' }],
    ['a number for an id', { ...GOOD, userId: 0 }],
    ['a list for an id', { ...GOOD, userId: ['u'] }],
    ['an id of 257 characters', { ...GOOD, threadId: 'x'.repeat(257) }],
    ['an id of 10 kB', { ...GOOD, threadId: 'x'.repeat(10_000) }],
    ['a null profile', { ...GOOD, profile: null }],
    ['an empty profile', { ...GOOD, profile: '' }],
    ['text for waitMs', { ...GOOD, waitMs: '1000' }],
    ['true for waitMs', { ...GOOD, waitMs: true }],
    ['a null waitMs', { ...GOOD, waitMs: null }],
    ['half a millisecond', { ...GOOD, waitMs: 0.5 }],
    ['a negative waitMs', { ...GOOD, waitMs: -1 }],
    ['a waitMs above the limit', { ...GOOD, waitMs: 600_001 }],
  ];
  test.each(odd)('[H-02] an acquire with %s is refused, and the service is not asked', async (_name, body) => {
    const h = openApp();
    expect(await acquire(h, body)).toMatchObject(REFUSED);
    expect(h.service.asked).toEqual([]);
  });

  test('[H-02] the refusal says which field and why, and repeats no value', async () => {
    const h = openApp();
    expect((await acquire(h, { ...GOOD, image: 'SECRET' })).detail).toBe('body must not have the field "image".');
    expect((await acquire(h, { ...GOOD, userId: 7 })).detail).toBe('body/userId must be string.');
    expect((await acquire(h, { ...GOOD, userId: 'a\nSECRET' })).detail).toMatch(/userId must not contain control/);
    const long = await acquire(h, { ...GOOD, [`n${'n'.repeat(9000)}`]: 1 });
    expect(long.detail.length).toBeLessThan(120);
  });

  test('[H-02] what is at the limits is taken as it is, and 0 stays 0', async () => {
    const h = openApp();
    const body = { userId: '😀'.repeat(256), threadId: 'x', profile: 'p', waitMs: 0 };
    expect((await acquire(h, body)).status).toBe(201);
    expect((await acquire(h, { ...GOOD, waitMs: 600_000 })).status).toBe(201);
    expect(h.service.asked.map(({ args }) => args[0])).toEqual([body, { ...GOOD, waitMs: 600_000 }]);
  });

  test('[H-02] bad JSON, bad UTF-8, other content types and large bodies', async () => {
    const h = openApp();
    const good = JSON.stringify(GOOD);
    expect(await post(h, '/v1/sandboxes', '{"userId":')).toMatchObject(REFUSED);
    expect(await post(h, '/v1/sandboxes', 'null')).toMatchObject(REFUSED);
    const latin1 = Buffer.from('{"userId":"\u00e9","threadId":"t"}', 'latin1');
    expect(await post(h, '/v1/sandboxes', latin1)).toMatchObject(REFUSED);
    const unsupported = { status: 415, code: 'unsupported_media_type' };
    for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'nonsense', 'a/b/c;;']) {
      expect(await post(h, '/v1/sandboxes', good, { 'content-type': type }), type).toMatchObject(unsupported);
    }
    const large = JSON.stringify({ ...GOOD, userId: 'x'.repeat(65_536) });
    expect(await post(h, '/v1/sandboxes', large)).toMatchObject({ status: 413, code: 'payload_too_large' });
    expect(h.service.asked).toEqual([]);
    expect((await post(h, '/v1/sandboxes', good, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(
      201,
    );
  });

  test.each(['keepalive', 'release'])('[H-02] %s takes a hold id as digits in text, and nothing else', async (call) => {
    const h = openApp();
    const url = `${SANDBOX_PATH}/${call}`;
    const exact = Number(HOLD_ID);
    const bad = [exact, null, '', '0', '01', '-1', '1e3', ' 1', '1\n', '12345678901234567', '9999999999999999'];
    for (const holdId of bad) {
      expect(await post(h, url, JSON.stringify({ holdId })), String(holdId)).toMatchObject(REFUSED);
    }
    expect(await post(h, url, '{}')).toMatchObject(REFUSED);
    expect(await post(h, url, JSON.stringify({ holdId: '1', more: 1 }))).toMatchObject(REFUSED);
    expect(h.service.asked).toEqual([]);
    expect((await post(h, url, JSON.stringify({ holdId: String(exact) }))).status).toBe(200);
    expect(h.service.asked).toEqual([{ call, args: [SANDBOX_ID, exact] }]);
  });

  test('[H-03] a bodyless DELETE with a JSON content type works', async () => {
    const h = openApp();
    const answer = await h.app.inject({ method: 'DELETE', url: SANDBOX_PATH, headers: JSON_TYPE });
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    h.service.destroyed = 'removing';
    const later = await h.app.inject({ method: 'DELETE', url: SANDBOX_PATH });
    expect([later.statusCode, later.body]).toEqual([202, '']);
    expect(later.headers).toMatchObject({ location: SANDBOX_PATH, 'retry-after': '2' });
  });

  test('[H-03] whatever comes along with a DELETE is not read', async () => {
    const h = openApp();
    const port = await listen(h.app);
    const types = ['application/json', 'text/plain', 'a/b;;', ''];
    for (const type of types) {
      for (const body of ['{"no', 'x'.repeat(70_000)]) {
        const reply = await call(port, {
          method: 'DELETE',
          path: SANDBOX_PATH,
          body,
          headers: { 'content-type': type, 'content-length': String(body.length) },
        });
        expect([reply.status, reply.body], type).toEqual([204, '']);
      }
    }
    expect(h.service.asked).toHaveLength(2 * types.length);
  });

  test('[H-03] a required body that is missing is 400, with or without a content type', async () => {
    const h = openApp();
    for (const url of ['/v1/sandboxes', `${SANDBOX_PATH}/keepalive`, `${SANDBOX_PATH}/release`]) {
      expect(await post(h, url, '', {})).toMatchObject(REFUSED);
      expect(await post(h, url, '', JSON_TYPE)).toMatchObject(REFUSED);
    }
    expect(h.service.asked).toEqual([]);
  });
});

describe('text from outside', () => {
  const plain = [
    '../../etc/passwd',
    'a/b:c',
    `'"\`$(id)`,
    '*?[a-z]',
    'sandbox-*',
    '%00',
    '{x}',
    'Ünïcode',
    ' a ',
    '-rf',
  ];
  test.each(plain)('[H-04] %j is plain text: it reaches the service unchanged and no log or event', async (text) => {
    const h = openApp();
    expect((await acquire(h, { userId: text, threadId: text })).status).toBe(201);
    expect(h.service.asked[0]?.args).toEqual([{ userId: text, threadId: text }]);
    const filter = new URLSearchParams({ userId: text, threadId: text });
    expect((await h.app.inject(`/v1/sandboxes?${filter}`)).statusCode).toBe(200);
    expect(h.service.asked[1]?.args).toEqual([{ userId: text, threadId: text, limit: 100 }]);
    expect(h.lines.map((line) => line.route)).toEqual(['/v1/sandboxes', '/v1/sandboxes']);
    expect(JSON.stringify([h.lines, h.events])).not.toContain(JSON.stringify(text));
  });

  const hidden = ['\u0000', 'a\nb', 'a\u007fb', 'a\u0085b', 'a\u009fb', '\ud800', 'a\udc00b', '\u001b[31m'];
  test.each(hidden)('[H-04] %j is refused in bodies, and in queries as far as it can be sent', async (text) => {
    const h = openApp();
    expect(await acquire(h, { ...GOOD, userId: text })).toMatchObject(REFUSED);
    expect(await acquire(h, { ...GOOD, threadId: text })).toMatchObject(REFUSED);
    expect(await acquire(h, { ...GOOD, profile: text })).toMatchObject(REFUSED);
    if (text.isWellFormed()) {
      const answer = await h.app.inject(`/v1/sandboxes?userId=${encodeURIComponent(text)}`);
      expect(answer.statusCode).toBe(400);
    }
    expect(h.service.asked).toEqual([]);
  });

  const ids: [string, string][] = [
    ['a letter', 'x'],
    ['capitals', SANDBOX_ID.toUpperCase()],
    ['a digit too many', `${SANDBOX_ID}0`],
    ['a path', '..%2F..%2Fetc'],
    ['a wildcard', '*'],
    ['a null byte', '%00'],
    ['no UTF-8', '%ff'],
    ['no percent code', '%zz'],
    ['10 kB', 'a'.repeat(10_000)],
  ];
  test.each(ids)('[H-04] %s for an id in the path is refused', async (_name, id) => {
    const h = openApp();
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/events'],
      ['GET', '/logs'],
      ['DELETE', ''],
      ['POST', '/keepalive'],
      ['POST', '/release'],
    ] as const) {
      const body = method === 'POST' ? { payload: { holdId: '1' } } : {};
      const answer = await h.app.inject({ method, url: `/v1/sandboxes/${id}${rest}`, ...body });
      expect([answer.statusCode, answer.json().code]).toEqual([400, 'invalid_request']);
      expect(answer.headers['x-request-id']).toBe(answer.json().requestId);
    }
    expect(h.service.asked).toEqual([]);
    expect(h.lines.filter((line) => line.msg === 'request')).toHaveLength(6);
  });
});

test('[H-02] query strings: numbers are read, defaults filled in, anything odd refused', async () => {
  const h = openApp();
  const list = async (query: string) => (await h.app.inject(`/v1/sandboxes${query}`)).statusCode;
  expect(await list('')).toBe(200);
  expect(await list('?limit=7&state=warm&profile=p&cursor=c')).toBe(200);
  expect(h.service.asked.map(({ args }) => args[0])).toEqual([
    { limit: 100 },
    { limit: 7, state: 'warm', profile: 'p', cursor: 'c' },
  ]);
  const odd = [
    'limit=0',
    'limit=501',
    'limit=x',
    'limit=',
    'limit=1.5',
    'limit=1&limit=2',
    'state=gone',
    'foo=1',
    'userId=',
    'userId=a&userId=b',
  ];
  for (const query of odd) expect(await list(`?${query}`), query).toBe(400);
  expect(h.service.asked).toHaveLength(2);
});

test('[H-02] a query that is not UTF-8 is refused, instead of being taken for the text as it is written', async () => {
  const h = openApp();
  for (const query of ['userId=Andr%E9', 'userId=%ff', 'userId=%zz', 'userId=%', 'threadId=%ed%a0%80', 'cursor=a%c3']) {
    const answer = await h.app.inject(`/v1/sandboxes?${query}`);
    expect([answer.statusCode, answer.json().code], query).toEqual([400, 'invalid_request']);
  }
  expect(h.service.asked).toEqual([]);
  expect((await h.app.inject('/v1/sandboxes?userId=Andr%C3%A9+%25')).statusCode).toBe(200);
  expect(h.service.asked[0]?.args).toEqual([{ userId: 'André %', limit: 100 }]);
});
