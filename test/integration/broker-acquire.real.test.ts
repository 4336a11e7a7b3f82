import { createConnection } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { sandboxName } from '../../src/domain/names.ts';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { dockerClient, eventually, leftovers } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { useTinyImage } from '../support/tiny-image.ts';

const { readyBroker } = useBrokers();
const docker = dockerClient();
const START = /^POST \/containers\/[^/]+\/start/;

const tiny = useTinyImage();

/** The container that has the sandbox's own name. */
const inspect = ({ deployment }: BrokerProcess, id: string) =>
  docker.getContainer(sandboxName(deployment, id as never)).inspect();

/** Whoever acquires is the first to see what became of a container. */
const unreconciled = () => ({ reconcile: { interval: '1h' }, profiles: { default: { image: tiny.name } } });

async function answers(url: string | null): Promise<boolean> {
  const reply = await fetch(`${url}/v1/sandbox`).catch(() => null);
  await reply?.arrayBuffer();
  return reply?.status === 200;
}

test('[A-01] the first acquire starts a sandbox and gives a url that answers (real)', async () => {
  await using broker = await readyBroker();
  const { status, body, headers } = await broker.api.acquire(person('a'));
  expect(status).toBe(201);
  expect(body).toMatchObject({ ...person('a'), profile: 'default', origin: 'created', state: 'active', holds: 1 });
  expect(body.holdId).toMatch(/^[1-9]\d*$/);
  expect(headers.location).toBe(`/v1/sandboxes/${body.id}`);
  expect(await answers(body.url)).toBe(true);
  expect((await inspect(broker, body.id)).State.Status).toBe('running');
});

test('[A-03] after its release the same container is reclaimed, and nobody else gets it (real)', async () => {
  await using broker = await readyBroker({ overrides: { profiles: { default: { image: tiny.name } } } });
  const first = (await broker.api.acquire(person('a'))).body;
  const container = (await inspect(broker, first.id)).Id;
  expect((await broker.api.release(first)).body).toMatchObject({ state: 'warm', holds: 0, url: first.url });

  const other = (await broker.api.acquire(person('b'))).body;
  expect(other).toMatchObject({ origin: 'created' });
  expect([other.id, other.url]).not.toContain(first.id);
  expect(other.url).not.toBe(first.url);
  expect((await inspect(broker, other.id)).Id).not.toBe(container);

  const again = await broker.api.acquire(person('a'));
  expect(again.status).toBe(200);
  expect(again.body).toMatchObject({ id: first.id, url: first.url, origin: 'reclaimed', holds: 1 });
  expect(again.body.holdId).not.toBe(first.holdId);
  expect((await inspect(broker, first.id)).Id).toBe(container);
  expect((await broker.api.acquire(person('a'))).body).toMatchObject({ origin: 'reused', holds: 2 });
});

test('[A-06] a container that died is replaced and removed, and the caller learns how it ended (real)', async () => {
  await using broker = await readyBroker({ overrides: unreconciled() });
  const first = (await broker.api.acquire(person('a'))).body;
  const old = (await inspect(broker, first.id)).Id;
  await docker.getContainer(old).kill();

  const { status, body } = await broker.api.acquire(person('a'));
  expect(status).toBe(201);
  expect(body).toMatchObject({ id: first.id, origin: 'created', previous: { exitCode: 137 } });
  expect(await answers(body.url)).toBe(true);
  expect((await broker.api.keepalive(first.id, first.holdId)).body.code).toBe('hold_lost');
  await eventually(async () => {
    const { containers } = await leftovers(broker.deployment);
    return containers.length === 1 && containers[0] !== old;
  });
});

test('[A-06] a container that was started again goes on, under the url that it has now (real)', async () => {
  await using broker = await readyBroker({ overrides: unreconciled() });
  const first = (await broker.api.acquire(person('a'))).body;
  const before = await inspect(broker, first.id);
  await docker.getContainer(before.Id).stop({ t: 0 });
  // Somebody else's port: the old url must not come back.
  const other = (await broker.api.acquire(person('b'))).body;
  await docker.getContainer(before.Id).start();

  const { status, body } = await broker.api.acquire(person('a'));
  expect(status).toBe(200);
  const after = await inspect(broker, first.id);
  expect(after.Id).toBe(before.Id);
  expect(after.State.Running).toBe(true);
  expect(body.url).toBe(`http://127.0.0.1:${after.NetworkSettings.Ports['8080/tcp']?.[0]?.HostPort}`);
  expect(body.url).not.toBe(other.url);
  expect(await answers(body.url)).toBe(true);
});

test('[A-09] one that never answers is told so, with its status, and nothing is left of it (real)', async () => {
  const silent = { image: tiny.name, environment: { MODE: 'silent' }, readiness: { timeout: '1s' } };
  const ending = { image: tiny.name, environment: { MODE: 'exit', WORDS: 'of farewell' } };
  const profiles = { default: { image: tiny.name }, silent, ending };
  await using broker = await readyBroker({ overrides: { profiles } });
  const [late, ended] = await Promise.all([
    broker.api.acquire(person('a'), { profile: 'silent' }),
    broker.api.acquire(person('a'), { profile: 'ending' }),
  ]);
  expect(late.status).toBe(504);
  expect(late.body).toMatchObject({
    code: 'sandbox_not_ready',
    detail: expect.stringMatching(/\/v1\/sandbox: no .+ status|answer/),
  });
  expect(ended.status).toBe(502);
  expect(ended.body).toMatchObject({ code: 'sandbox_start_failed', detail: expect.stringContaining('line 30') });
  await eventually(async () => (await leftovers(broker.deployment)).containers.length === 0);
  expect((await broker.api.list()).body.items).toEqual([]);
});

test('[A-12] when the wait runs out the start goes on, and asking again finds it (real)', async () => {
  await using proxy = await EngineProxy.open();
  const docker = { socketPath: proxy.socketPath };
  const overrides = { runtime: { docker }, profiles: { default: { image: tiny.name } } };
  await using broker = await readyBroker({ overrides });
  const start = proxy.fault(START, { kind: 'hold' });
  const { status, body, headers } = await broker.api.acquire(person('a'), { waitMs: 50 });
  expect(status).toBe(202);
  expect(body).toMatchObject({ url: null, state: 'starting', holds: 0 });
  expect(headers).toMatchObject({ location: `/v1/sandboxes/${body.id}`, 'retry-after': '1' });
  expect(body.holdId).toBeUndefined();
  await start.reached;
  expect((await broker.api.acquire(person('a'), { waitMs: 0 })).status).toBe(202);
  start.lift();
  const found = await broker.api.acquire(person('a'));
  expect(found.status).toBe(200);
  expect(found.body.id).toBe(body.id);
  expect(await answers(found.body.url)).toBe(true);
  expect(proxy.count(/^POST \/containers\/create/)).toBe(1);
});

test('[A-12] when the caller hangs up the start ends ready, with a hold for whoever asks again (real)', async () => {
  await using proxy = await EngineProxy.open();
  const docker = { socketPath: proxy.socketPath };
  const overrides = { runtime: { docker }, profiles: { default: { image: tiny.name } } };
  await using broker = await readyBroker({ overrides });
  const start = proxy.fault(START, { kind: 'hold' });
  const caller = new AbortController();
  const left = expect(broker.api.acquire(person('a'), {}, caller.signal)).rejects.toThrow();
  await start.reached;
  caller.abort();
  await left;
  await broker.logged(({ msg, hungUp }) => msg === 'request' && hungUp === true);
  start.lift();
  const [ready] = await eventually(async () => {
    const { items } = (await broker.api.list({ state: 'active' })).body;
    return items.length > 0 && items;
  });
  expect(ready).toMatchObject({ holds: 1 });
  const found = await broker.api.acquire(person('a'));
  expect(found.status).toBe(200);
  expect(found.body).toMatchObject({ id: ready!.id, url: ready!.url, origin: 'reused' });
  expect(await answers(found.body.url)).toBe(true);
  expect(proxy.count(/^POST \/containers\/create/)).toBe(1);
});

test('[R-16] a sandbox has the limits of its profile and no more rights than that (real)', async () => {
  const resources = { memory: '96MiB', cpus: 0.5, pids: 48, shm: '8MiB' };
  const overrides = { profiles: { default: { resources, security: { capAdd: ['CHOWN'] } } } };
  await using broker = await readyBroker({ overrides });
  const { body } = await broker.api.acquire(person('a'));
  const { HostConfig, NetworkSettings } = await inspect(broker, body.id);
  expect(HostConfig).toMatchObject({
    Memory: 96 * 1024 ** 2,
    MemorySwap: 96 * 1024 ** 2,
    NanoCpus: 5e8,
    PidsLimit: 48,
    ShmSize: 8 * 1024 ** 2,
    CapAdd: ['CHOWN'],
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    Init: true,
    Privileged: false,
    AutoRemove: false,
    RestartPolicy: { Name: 'no' },
  });
  const published = NetworkSettings.Ports['8080/tcp'];
  expect(published).toEqual([{ HostIp: '127.0.0.1', HostPort: new URL(body.url!).port }]);

  const command = 'grep -E "^(CapBnd|CapEff|NoNewPrivs):" /proc/self/status';
  const reply = await fetch(`${body.url}/v1/shell/exec`, { method: 'POST', body: JSON.stringify({ command }) });
  const { stdout } = (await reply.json()) as { stdout: string };
  // As an ordinary user: the one capability of the profile is within its bounds, and none is in effect.
  expect(stdout.match(/\S+$/gm)).toEqual(['0'.repeat(16), `${'0'.repeat(15)}1`, '1']);

  const others = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const outside = others.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address);
  expect(outside).not.toEqual([]);
  for (const host of outside) expect(await connects(host, Number(new URL(body.url!).port))).toBe(false);
});

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 1_000 });
    const end = (connected: boolean) => () => {
      socket.destroy();
      resolve(connected);
    };
    socket.on('connect', end(true)).on('error', end(false)).on('timeout', end(false));
  });
}
