import { expect, test } from 'vitest';
import { sandboxName } from '../../src/domain/names.ts';
import { person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';

const { readyBroker } = useBrokers();
const docker = dockerClient();

test.for(['ends', 'is removed by somebody'] as const)(
  '[R-18] a container that %s is noticed without being asked, and the next handout tells why (real)',
  async (what) => {
    await using broker = await readyBroker({ overrides: { reconcile: { interval: '1h' } } });
    const { body } = await broker.api.acquire(person('a'));
    await broker.logged(({ event }) => event === 'started');
    const container = docker.getContainer(sandboxName(broker.deployment, body.id as never));
    if (what === 'ends') await container.kill();
    else await container.remove({ force: true });
    const ended = await broker.logged(({ event }) => event === 'ended');
    expect(ended).toMatchObject({ sandbox: body.id, exitCode: 137 });
    const gone = await broker.api.get(body.id);
    expect(gone.status).toBe(404);
    expect(gone.body.previous).toMatchObject({ exitCode: 137 });
    const again = await broker.api.acquire(person('a'));
    expect(again.status).toBe(201);
    expect(again.body.previous).toMatchObject({ exitCode: 137 });
    expect(again.body.url).not.toBe(body.url);
  },
);

test('[R-18] what ended while the events were cut off is found when they are followed anew (real)', async () => {
  await using proxy = await EngineProxy.open();
  const runtime = { docker: { socketPath: proxy.socketPath } };
  await using broker = await readyBroker({ overrides: { reconcile: { interval: '1h' }, runtime } });
  const { body } = await broker.api.acquire(person('a'));
  const cut = proxy.fault(/^GET \/events/, { kind: 'refuse', status: 500, message: 'cut off' });
  proxy.cutAll();
  await cut.reached;
  await docker.getContainer(sandboxName(broker.deployment, body.id as never)).kill();
  cut.lift();
  await broker.logged(({ event, sandbox }) => event === 'ended' && sandbox === body.id);
  expect((await broker.api.acquire(person('a'))).body).toMatchObject({
    origin: 'created',
    previous: { exitCode: 137 },
  });
});

test('[H-06] readiness stays when the engine fails for all, and its body says so; liveness never asks (real)', async () => {
  await using proxy = await EngineProxy.open();
  const runtime = { docker: { socketPath: proxy.socketPath } };
  await using broker = await readyBroker({ overrides: { runtime } });
  const refused = proxy.fault(/./, { kind: 'refuse', status: 500, message: 'out of order' });
  await eventually(async () => (await broker.api.readyz()).body.dependencies?.engine.ok === false);
  expect((await broker.api.healthz()).status).toBe(200);
  const { status, body } = await broker.api.readyz();
  expect(status).toBe(200);
  expect(body).toMatchObject({ ready: true, dependencies: { store: { ok: true }, engine: { ok: false } } });
  expect(body.dependencies?.engine.message).toContain('out of order');
  refused.lift();
  await eventually(async () => (await broker.api.readyz()).body.dependencies?.engine.ok === true);
});
