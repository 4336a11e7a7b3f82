import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';
import { eventually, leftovers } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';

const { startBroker } = useBrokers();

test('[R-17] an engine that refuses the API version is told so: unready, 503, nothing done; then all goes on (real)', async () => {
  await using proxy = await EngineProxy.open();
  const words = 'client version 1.24 is too old. Minimum supported API version is 1.44, please upgrade your client';
  const refusal = proxy.fault(/./, { kind: 'refuse', status: 400, message: words });
  const image = 'sandbox-broker/sandbox:local';
  await using broker = await startBroker({
    overrides: { runtime: { docker: { socketPath: proxy.socketPath } }, profiles: { default: { image } } },
  });
  await broker.logged(({ event, loop }) => event === 'loop-failed' && loop === 'reconcile');
  const { status, body } = await broker.api.readyz();
  expect(status).toBe(503);
  expect(body.because).toContain(`the container engine refused (400, ${words})`);
  expect(body.dependencies?.engine).toMatchObject({ ok: false, message: expect.stringContaining(words) });
  const refused = await broker.api.acquire(person('u'));
  expect(refused.status).toBe(503);
  expect(refused.body).toMatchObject({ code: 'runtime_unavailable', detail: expect.stringContaining(words) });
  expect((await broker.api.healthz()).status).toBe(200);
  expect(await leftovers(broker.deployment)).toEqual({ containers: [], networks: [], volumes: [] });
  expect(proxy.count(/^(POST|DELETE) /)).toBe(0);

  refusal.lift();
  await eventually(async () => (await broker.api.readyz()).status === 200);
  expect((await broker.api.acquire(person('u'), { waitMs: 20_000 })).status).toBe(201);
});
