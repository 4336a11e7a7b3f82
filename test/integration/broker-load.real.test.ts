import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { eventually, leftovers } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { useTinyImage } from '../support/tiny-image.ts';

const { readyBroker } = useBrokers();

const tiny = useTinyImage();

test('[A-11] [C-04] 50 cold acquires at once all succeed or fail with a clear code, and none is left behind (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = {
    acquire: { wait: '2m', startTimeout: '2m' },
    holds: { ttl: '5m' },
    lease: { duration: '40s' },
    runtime: { docker: { socketPath: proxy.socketPath, timeout: '30s' } },
    capacity: { max: 45 },
    shutdown: { drainTimeout: '60s' },
    profiles: { default: { image: tiny.name } },
  };
  await using broker = await readyBroker({ overrides });
  const full = { kind: 'refuse', status: 500, message: 'no space left on device' } as const;
  proxy.fault(/^POST \/containers\/[^/]+\/start/, full, 5);
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => broker.api.acquire(person(String(n)))));

  const told = answers.map(({ status, body }) => `${status} ${body.code ?? body.origin}`);
  const count = (what: string): number => told.filter((one) => one === what).length;
  expect([...new Set(told)].sort()).toEqual(['201 created', '429 capacity_exhausted', '502 sandbox_start_failed']);
  expect(count('429 capacity_exhausted')).toBe(5);
  expect(count('502 sandbox_start_failed')).toBe(5);
  const urls = answers.filter(({ status }) => status === 201).map(({ body }) => body.url);
  expect(new Set(urls).size).toBe(40);
  await eventually(async () => {
    const { sandboxes, capacity } = (await broker.api.status()).body;
    return (
      capacity.used === 40 &&
      sandboxes.active === 40 &&
      sandboxes.starting + sandboxes.warm + sandboxes.destroying === 0
    );
  });

  broker.signal('SIGTERM');
  expect((await broker.ended(60_000)).code).toBe(0);
  expect((await leftovers(broker.deployment)).containers).toEqual([]);
}, 120_000);

/** Collects all garbage, and says what is left. */
const COLLECT = `process.on('SIGWINCH', () => {
  gc();
  console.log(JSON.stringify({ event: 'collected', ...process.memoryUsage() }));
})`;

async function footprint(broker: BrokerProcess): Promise<{ heap: number; rss: number; sockets: number }> {
  const before = broker.events('collected').length;
  broker.signal('SIGWINCH');
  const line = await eventually(async () => broker.events('collected')[before] ?? null);
  return { heap: Number(line.heapUsed), rss: Number(line.rss), sockets: await broker.sockets() };
}

test('1,000 re-acquires in a row, each with its release, leave memory and sockets level (real)', async () => {
  const overrides = { profiles: { default: { image: tiny.name } }, log: { level: 'info' } };
  await using broker = await readyBroker({ overrides, preload: COLLECT, nodeArguments: ['--expose-gc'] });
  const { api } = broker;
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn += 1) {
      const { status, body } = await api.acquire(person('a'));
      expect(status).toBe(200);
      await api.release(body);
    }
  };
  await api.release((await api.acquire(person('a'))).body);
  await turns(500);
  const before = await footprint(broker);
  await turns(1_000);
  const after = await footprint(broker);
  // What one call leaves, in bytes: a promise with its closure and a listener would be more.
  expect((after.heap - before.heap) / 1_000).toBeLessThan(300);
  expect(after.rss - before.rss).toBeLessThan(32 * 1024 ** 2);
  expect((await api.metrics()).get('sandbox_broker_background_tasks')).toBe(0);
  expect(Math.abs(after.sockets - before.sockets)).toBeLessThanOrEqual(2);
}, 90_000);
