import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';

const { readyBroker } = useBrokers();
/** Half of what a call of the engine may take here: readiness waits for none. */
const PROBE_PATIENCE_MS = 4_000;

test('[H-06] an engine that hangs takes no replica out of the load balancer; its holders go on (real)', async () => {
  await using proxy = await EngineProxy.open();
  const runtime = { docker: { socketPath: proxy.socketPath, timeout: '8s' } };
  await using broker = await readyBroker({ overrides: { runtime } });
  const { body } = await broker.api.acquire(person('a'));
  expect((await broker.api.readyz()).status).toBe(200);
  const hangs = proxy.fault(/./, { kind: 'hold' });
  const probe = async () => {
    const sentAt = performance.now();
    const answer = await broker.api.readyz();
    expect(performance.now() - sentAt).toBeLessThan(PROBE_PATIENCE_MS);
    expect(answer.status).toBe(200);
    return answer.body;
  };
  const probes = await Promise.all(Array.from({ length: 20 }, probe));
  expect(probes).toHaveLength(20);
  expect((await broker.api.keepalive(body.id, body.holdId)).status).toBe(200);
  await eventually(async () => (await probe()).dependencies?.engine.ok === false);
  hangs.lift();
  await eventually(async () => (await probe()).dependencies?.engine.ok === true);
});
