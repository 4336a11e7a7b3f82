import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import type { LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { type App, buildApp } from '../../src/http/app.ts';
import type { SandboxService } from '../../src/service/api.ts';
import { type FrontWorld, frontWorld } from '../support/front-world.ts';
import { Conformance, fetchDocument } from './conformance.ts';
import { type FuzzedRequest, requestsFrom } from './fuzz-requests.ts';

/** `HTTP_FUZZ_SEED=… HTTP_FUZZ_PATH=…` repeats what a failure has printed. */
const { HTTP_FUZZ_SEED: seed, HTTP_FUZZ_PATH: path } = process.env;
const REPEATED = { ...(seed === undefined ? {} : { seed: Number(seed) }), ...(path === undefined ? {} : { path }) };

let world: FrontWorld;
let app: App;
let conformance: Conformance;
let requests: fc.Arbitrary<FuzzedRequest>;

beforeAll(async () => {
  world = await frontWorld();
  app = buildApp({
    service: new Proxy({} as SandboxService, {
      get: (_target, name) => (Reflect.get(world.service, name) as () => unknown).bind(world.service),
    }),
    auth: { keys: [] },
    logger: pino({ level: 'silent' }),
    emit: () => undefined,
    metrics: { render: async () => ({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: 'up 1\n' }) },
    version: '0.0.0',
    newId: () => 'made',
    draining: () => false,
  });
  const document = await fetchDocument(app);
  conformance = new Conformance(document);
  requests = requestsFrom(document);
}, 60_000);
afterAll(() => app?.close());

async function send({ method, path, id, suffix, headers, payload }: FuzzedRequest): Promise<LightMyRequestResponse> {
  const known = world.ids();
  const chosen = typeof id === 'number' ? (known[id % known.length] ?? '0'.repeat(32)) : encodeURIComponent(id);
  const url = `${path.replace('{id}', chosen)}${suffix}`;
  return app.inject({ method, url, headers, ...(payload === null ? {} : { payload }) });
}

const isLong = ({ id }: FuzzedRequest): boolean => typeof id === 'string' && id.length > 100;

/** What a refused request must not have made. */
const made = (): readonly string[] => [...world.ids(), ...world.engine.containers.map((container) => container.id)];

async function judge(request: FuzzedRequest): Promise<void> {
  const before = new Set(made());
  const answer = await send(request);
  const { statusCode } = answer;
  expect(statusCode, answer.body).toBeLessThan(500);
  if (request.documented) conformance.check(request.method, request.path, answer);
  // No call of the document; a part of a path that is too long for any id is refused before that is known.
  else expect(['route_not_found', ...(isLong(request) ? ['invalid_request'] : [])]).toContain(answer.json().code);
  if (statusCode >= 400) expect(made().filter((one) => !before.has(one))).toEqual([]);
}

test('[H-01] [H-02] [H-04] whatever is asked gets an answer of the document, never 500, and a refusal makes nothing', async () => {
  const statuses = new Map<number, number>();
  const property = fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 40, size: 'max' }), async (all) => {
    world = await frontWorld();
    for (const each of all) await judge(each);
  });
  const counted = conformance.check.bind(conformance);
  conformance.check = (method, where, answer) => {
    statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1);
    counted(method, where, answer);
  };
  await fc.assert(property, { numRuns: 60, ...REPEATED });
  // It is no fuzz of one refusal: calls were served, refused for their form and for what they name.
  if (seed === undefined)
    for (const status of [200, 201, 204, 400, 404, 413, 415, 429]) expect(statuses.get(status)).toBeGreaterThan(0);
}, 60_000);

test('[H-02] what was served and refused leaves nothing in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  world = await frontWorld();
  const round = async (): Promise<number> => {
    for (let turn = 0; turn < 150; turn += 1) {
      const payload = { userId: `u${turn % 3}`, threadId: 't' };
      const { id, holdId } = (await app.inject({ method: 'POST', url: '/v1/sandboxes', payload })).json();
      await app.inject({ method: 'POST', url: `/v1/sandboxes/${id}/release`, payload: { holdId } });
      await app.inject({ method: 'POST', url: '/v1/sandboxes', payload: { userId: 'x'.repeat(10_000) } });
      await app.inject(`/v1/sandboxes/${turn}?${'q'.repeat(1_000)}`);
      await app.inject(`/v1/unknown-${turn}-${'p'.repeat(1_000)}`);
    }
    world.forgetEvents();
    collect();
    return process.memoryUsage().heapUsed;
  };
  await round();
  await round();
  const levels = [await round(), await round(), await round()];
  // 750 requests a round: what each of them left behind would show several times over.
  expect(Math.min(levels[1]! - levels[0]!, levels[2]! - levels[1]!)).toBeLessThan(750 * 1_000);
}, 60_000);

test('[H-08] with a store that does not answer, or cannot be read, every call says so and none is a 500', async () => {
  const property = fc.asyncProperty(
    requests,
    fc.constantFrom('store_unavailable', 'record_unreadable'),
    async (request, code) => {
      world = await frontWorld();
      world.fail(() => new BrokerError(code, 'as told'));
      const answer = await send(request);
      expect([500, 502, 504]).not.toContain(answer.statusCode);
      if (answer.statusCode === 503 && request.path !== '/readyz')
        expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    },
  );
  await fc.assert(property, { numRuns: 200, ...REPEATED });
}, 60_000);
