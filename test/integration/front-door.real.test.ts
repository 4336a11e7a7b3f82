import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../src/domain/errors.ts';
import { RESERVED_CODES } from '../../src/http/problems.ts';
import type { ProblemBody } from '../../src/http/schemas.ts';
import { type BrokerClient, person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import type { EngineProxy } from '../support/engine-proxy.ts';
import { acquired, CREATE, type Fleet, START, useFleets } from '../support/fleet.ts';

const root = resolve(import.meta.dirname, '../..');
const { openFleet } = useFleets();
const { startBroker } = useBrokers();
const docker = dockerClient();
const NOWHERE = '0'.repeat(32);

type Call = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, body?: string, type?: string];
type Operations = Record<string, Record<string, { responses: Record<string, { description: string }> }>>;

let fleet: Fleet;
let broker: BrokerProcess;
let proxy: EngineProxy;
let operations: Operations;
const provoked = new Set<ErrorCode>();

beforeAll(async () => {
  fleet = await openFleet({
    settings: {
      capacity: { max: 3, perUser: 1 },
      profiles: {
        default: {},
        ending: { environment: { MODE: 'exit' } },
        silent: { environment: { MODE: 'silent' }, readiness: { timeout: '500ms' } },
        odd: { security: { runtime: 'no-such-runtime' } },
      },
    },
  });
  ({ replica: broker, proxy } = await fleet.joinThroughProxy());
  const document = await fetch(`${broker.api.url}/openapi.json`);
  operations = ((await document.json()) as { paths: Operations }).paths;
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

const acquire = (who: string, more: object = {}): Call => [
  'POST',
  '/v1/sandboxes',
  JSON.stringify({ ...person(who), ...more }),
];

/** Sends it as it is, and holds the refusal against the table of the design and the document of that route. */
async function refused(
  code: ErrorCode,
  status: number,
  [method, path, body, type = 'application/json']: Call,
  { url }: Pick<BrokerClient, 'url'> = broker.api,
): Promise<ProblemBody> {
  const content = body === undefined ? {} : { body, headers: { 'content-type': type } };
  const answer = await fetch(`${url}${path}`, { method, ...content });
  const problem = (await answer.json()) as ProblemBody;
  expect([answer.status, problem.code], problem.detail).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(problem).toMatchObject({ status, type: expect.stringContaining(code), requestId: expect.any(String) });
  expect(answer.headers.get('x-request-id')).toBe(problem.requestId);
  const retryable = status === 429 || status === 503;
  expect(problem.retryable).toBe(retryable);
  if (retryable) expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  else expect(answer.headers.get('retry-after')).toBeNull();
  if (code !== 'route_not_found') {
    const route = path.replace(/[0-9a-f]{32}/, '{id}').replace(/\?.*/, '');
    const listed = operations[route]?.[method.toLowerCase()]?.responses[status]?.description;
    expect(listed, `${code} is documented for ${method} ${route}`).toContain(`\`${code}\``);
  }
  provoked.add(code);
  return problem;
}

const gone = async (id: string): Promise<void> => {
  await eventually(async () => (await broker.api.destroy(id)).status === 204);
};

/** Makes one method of the service inside the process fail as nobody expects. */
const BROKEN_STATUS = `
  import { Sandboxes } from ${JSON.stringify(pathToFileURL(join(root, 'src/service/sandboxes.ts')).href)};
  Sandboxes.prototype.status = () => Promise.reject(new Error('SECRET'));`;

/** The sandbox's container, paused for as long as the work takes. */
async function whilePaused(id: string, work: () => Promise<unknown>): Promise<void> {
  const container = docker.getContainer(await fleet.containerOf(id));
  await container.pause();
  try {
    await work();
  } finally {
    await container.unpause();
  }
}

test('[H-08] what a caller does wrong: 400, 404, 409, 413, 415 (real)', async () => {
  await refused('invalid_request', 400, ['POST', '/v1/sandboxes', '{}']);
  await refused('invalid_request', 400, ['GET', '/v1/sandboxes?limit=0']);
  await refused('unknown_profile', 400, acquire('a', { profile: 'nothing' }));
  await refused('route_not_found', 404, ['GET', '/v1/nothing']);
  await refused('payload_too_large', 413, ['POST', '/v1/sandboxes', JSON.stringify({ userId: 'x'.repeat(70_000) })]);
  await refused('unsupported_media_type', 415, ['POST', '/v1/sandboxes', 'userId=a', 'text/plain']);
  const hold = JSON.stringify({ holdId: '1' });
  await refused('sandbox_not_found', 404, ['GET', `/v1/sandboxes/${NOWHERE}`]);
  await refused('sandbox_not_found', 404, ['GET', `/v1/sandboxes/${NOWHERE}/events`]);
  await refused('sandbox_not_found', 404, ['GET', `/v1/sandboxes/${NOWHERE}/logs`]);
  await refused('sandbox_not_found', 404, ['POST', `/v1/sandboxes/${NOWHERE}/keepalive`, hold]);
  await refused('sandbox_not_found', 404, ['POST', `/v1/sandboxes/${NOWHERE}/release`, hold]);
  expect(await fleet.containers()).toEqual([]);
  const { id } = await acquired(broker, person('a'));
  await refused('hold_lost', 409, ['POST', `/v1/sandboxes/${id}/keepalive`, hold]);
  await gone(id);
});

test('[H-05] [H-08] without a right key: 401 (real)', async () => {
  const keyed = await fleet.join({ auth: { keys: [{ name: 'gateway', key: 'KEY-1' }] } });
  await refused('unauthorized', 401, acquire('a'), keyed.api);
  await refused('unauthorized', 401, ['GET', '/v1/status'], keyed.api);
  keyed.signal('SIGTERM');
  await keyed.ended();
});

test('[H-08] what a container or its image does: 502, 504; nothing is left (real)', async () => {
  const ended = await refused('sandbox_start_failed', 502, acquire('a', { profile: 'ending' }));
  expect(ended.detail).toContain('line 30');
  await refused('sandbox_start_failed', 502, acquire('a', { profile: 'odd' }));
  await refused('sandbox_not_ready', 504, acquire('a', { profile: 'silent' }));
  await eventually(async () => (await fleet.containers()).length === 0);
});

test('[H-08] a name that somebody else has: 409; a container that is not fit: 503 (real)', async () => {
  const id = fleet.idOf(person('f'));
  const foreign = await docker.createContainer({ name: fleet.nameOf(id), Image: fleet.image });
  try {
    await refused('foreign_container', 409, acquire('f'));
    await refused('foreign_container', 409, ['DELETE', `/v1/sandboxes/${id}`]);
  } finally {
    await foreign.remove({ force: true });
  }
  const held = await acquired(broker, person('p'));
  await whilePaused(held.id, () => refused('sandbox_unsettled', 503, acquire('p', { waitMs: 0 })));
  await gone(held.id);
});

test('[H-08] no slot is free: 429, and when to ask again (real)', async () => {
  const mine = await acquired(broker, person('a'));
  const second = JSON.stringify({ ...person('a'), threadId: 'another' });
  await refused('user_capacity_exhausted', 429, ['POST', '/v1/sandboxes', second]);
  const others = [await acquired(broker, person('b')), await acquired(broker, person('c'))];
  await refused('capacity_exhausted', 429, acquire('d'));
  expect((await broker.api.list()).body.items.map(({ id }) => id).sort()).toEqual(
    [mine, ...others].map(({ id }) => id).sort(),
  );
  await Promise.all([mine, ...others].map(({ id }) => gone(id)));
});

test('[H-08] an engine that hangs, or is away: 504, 503 (real)', async () => {
  const held = proxy.fault(CREATE, { kind: 'hold' }, 1);
  await refused('runtime_timeout', 504, acquire('a'));
  held.lift();
  const cut = proxy.fault(/./, { kind: 'cut' });
  await refused('runtime_unavailable', 503, acquire('b'));
  await refused('runtime_unavailable', 503, ['DELETE', `/v1/sandboxes/${fleet.idOf(person('b'))}`]);
  cut.lift();
});

test('[H-08] a record that is somebody else’s: 409; one that cannot be read, or no store at all: 503 (real)', async () => {
  const { id } = await acquired(broker, person('s'));
  const key = await fleet.ask(async (redis) =>
    (await redis.keys(`*${id}*`)).find((name) => !/history|news/.test(name)),
  );
  const change = (field: string, value: string) => fleet.ask((redis) => redis.hset(String(key), field, value));
  const { userId = '', v = '' } = await fleet.record(id);
  await change('userId', 'somebody');
  await refused('identity_mismatch', 409, acquire('s'));
  await change('userId', userId);
  await change('v', 'x');
  await refused('record_unreadable', 503, acquire('s'));
  await refused('record_unreadable', 503, ['GET', `/v1/sandboxes/${id}`]);
  await change('v', v);
  await gone(id);
  await fleet.redis.stop();
  await refused('store_unavailable', 503, acquire('s'));
  await refused('store_unavailable', 503, ['GET', `/v1/sandboxes/${id}`]);
  await refused('store_unavailable', 503, ['GET', '/v1/sandboxes']);
  await refused('store_unavailable', 503, ['GET', '/v1/status']);
  await fleet.redis.start();
  await eventually(async () => (await broker.api.list()).status === 200);
});

test('[H-08] a replica that shuts down: 503 (real)', async () => {
  const start = proxy.fault(START, { kind: 'hold' });
  const inFlight = broker.api.acquire(person('z'));
  await start.reached;
  broker.signal('SIGTERM');
  await broker.logged(({ event, ready }) => event === 'readiness' && ready === false);
  await refused('shutting_down', 503, acquire('y'));
  start.lift();
  await inFlight;
  await broker.ended();
});

test('[H-08] an image that is not there: 502; an error that nobody expects: 500 without its words (real)', async () => {
  const profiles = { default: { image: 'sandbox-broker-test/nowhere:1', pull: 'never' } };
  await using bare = await startBroker({ overrides: { profiles }, preload: BROKEN_STATUS });
  await refused('image_unavailable', 502, acquire('a'), bare.api);
  const problem = await refused('internal_error', 500, ['GET', '/v1/status'], bare.api);
  expect(problem.detail).not.toContain('SECRET');
  const line = await bare.logged(({ requestId, level }) => requestId === problem.requestId && level === 'error');
  expect(line.detail).toBe('SECRET');
});

test('[H-08] every code was provoked, but for those that nothing gives (real)', () => {
  expect([...provoked].sort()).toEqual(ERROR_CODES.filter((code) => !RESERVED_CODES.includes(code)).sort());
});

test('[H-08] no source gives a reserved code', () => {
  const src = join(root, 'src');
  const tables = ['domain/errors.ts', 'http/problems.ts'];
  const sources = (readdirSync(src, { recursive: true }) as string[]).filter((name) => name.endsWith('.ts'));
  for (const name of sources.filter((one) => !tables.includes(one))) {
    const text = readFileSync(join(src, name), 'utf8');
    for (const code of RESERVED_CODES) expect(text, name).not.toContain(`'${code}'`);
  }
});
