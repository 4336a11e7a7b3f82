import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { buildTinyImage, leftovers, type TinyImage } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';

const { readyBroker } = useBrokers();

let tiny: TinyImage;
beforeAll(async () => {
  tiny = await buildTinyImage();
});
afterAll(async () => tiny[Symbol.asyncDispose]());

test('50 cold acquires at once all succeed or fail with a clear code, and none is left behind (real)', async () => {
  const max = 45;
  const refusals = 5;
  await using proxy = await EngineProxy.open();
  const overrides = {
    acquire: { wait: '2m', startTimeout: '2m' },
    holds: { ttl: '5m' },
    lease: { duration: '40s' },
    runtime: { docker: { socketPath: proxy.socketPath, timeout: '30s' } },
    capacity: { max },
    shutdown: { drainTimeout: '60s' },
    profiles: { default: { image: tiny.name } },
  };
  await using broker = await readyBroker({ overrides });
  const start = proxy.fault(/^POST \/containers\/[^/]+\/start/, { kind: 'refuse', status: 500, message: 'no more room' });
  const answers = Array.from({ length: 50 }, async (_, n) => {
    const { status, body } = await broker.api.acquire(person(String(n)));
    return { status, code: body.code, url: body.url, id: body.id };
  });
  while (start.hits < refusals) await start.next();
  start.lift();
  const all = await Promise.all(answers);

  const handedOut = all.filter(({ status }) => status === 201);
  expect(new Set(handedOut.map(({ url }) => url)).size).toBe(handedOut.length);
  const others = all.filter(({ status }) => status !== 201).map(({ status, code }) => `${status} ${code}`);
  expect([...new Set(others)].sort()).toEqual(['429 capacity_exhausted', '502 sandbox_start_failed']);
  expect(others.filter((code) => code.startsWith('502')).length).toBe(start.hits);
  expect(handedOut.length).toBeGreaterThanOrEqual(max - start.hits);
  expect((await broker.api.status()).body.sandboxes).toMatchObject({ active: handedOut.length, starting: 0 });
  await broker.api.list({ limit: '100' });

  broker.signal('SIGTERM');
  expect((await broker.ended).code).toBe(0);
  expect((await leftovers(broker.deployment)).containers).toEqual([]);
}, 120_000);

/** After a full collection, in bytes; with the sockets that the process has open. */
async function footprint(broker: BrokerProcess): Promise<{ heap: number; rss: number; sockets: number }> {
  const collected = broker.events('collected').length;
  broker.signal('SIGWINCH');
  const [line] = await broker.nth('collected', collected + 1);
  return { heap: Number(line.heapUsed), rss: Number(line.rss), sockets: await broker.sockets() };
}
