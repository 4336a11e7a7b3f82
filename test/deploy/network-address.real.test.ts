import type Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { person } from '../support/broker-client.ts';
import { API_KEY, BROKER_IMAGE, BrokerContainer, ensureBrokerImage, inContainer } from '../support/broker-container.ts';
import { dockerClient, eventually, newDeployment, type TinyImage } from '../support/docker.ts';
import { buildProgramImage } from '../support/program-image.ts';

/** Brokers, sandboxes and gateways on one network, as docker-compose.yml has them; nothing of a sandbox is published. */

const docker = dockerClient();
const LABEL = 'sandbox-broker-test';
const run = newDeployment('network');
/** A gateway is whatever has a client for HTTP: Node, of the broker's image. */
const IDLE = { Entrypoint: ['node', '-e', 'setInterval(() => {}, 60_000)'], Cmd: [] };
let redisImage: TinyImage;
let inside: Docker.Network;
let outside: Docker.Network;
let gateway: Docker.Container;
let stranger: Docker.Container;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

beforeAll(async () => {
  redisImage = await buildProgramImage(['redis-server']);
  await ensureBrokerImage();
  const network = (name: string): Promise<Docker.Network> =>
    docker.createNetwork({ Name: `${run}-${name}`, Driver: 'bridge', Labels: { [LABEL]: run } });
  [inside, outside] = await Promise.all([network('inside'), network('outside')]);
  [gateway, stranger] = await Promise.all([
    start(BROKER_IMAGE, `${run}-inside`, IDLE),
    start(BROKER_IMAGE, `${run}-outside`, IDLE),
  ]);
}, 60_000);

afterAll(async () => {
  const left = await docker.listContainers({ all: true, filters: { label: [`${LABEL}=${run}`] } });
  for (const { Id } of left) await docker.getContainer(Id).remove({ force: true });
  for (const network of [inside, outside]) await network?.remove();
  await redisImage?.[Symbol.asyncDispose]();
});

async function start(
  image: string,
  network: string,
  options: Partial<Docker.ContainerCreateOptions>,
  alias = 'nobody',
): Promise<Docker.Container> {
  const container = await docker.createContainer({
    Image: image,
    Labels: { [LABEL]: run },
    HostConfig: { NetworkMode: network, CapDrop: ['ALL'] },
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [alias] } } },
    ...options,
  });
  await container.start();
  return container;
}

const broker = (name: string, deployment: string, settings: object = {}): Promise<BrokerContainer> =>
  BrokerContainer.start({
    deployment,
    network: `${run}-inside`,
    name,
    settings: {
      runtime: { docker: { address: 'network', network: `${run}-inside`, namePrefix: deployment } },
      ...settings,
    },
  });

/** What a container gets for a request to another; null when nobody takes it. */
async function sent(from: Docker.Container, url: string, init: object = {}): Promise<Answer | null> {
  // Packets between networks are dropped, not refused.
  const script = `fetch(process.argv[1], { signal: AbortSignal.timeout(${from === stranger ? 2_000 : 15_000}), ...JSON.parse(process.argv[2]) })
    .then(async (reply) => ({ status: reply.status, body: await reply.json() }), () => null)
    .then((answer) => { console.log(JSON.stringify(answer)); process.exit(); })`;
  const { text } = await inContainer(from, ['node', '-e', script, url, JSON.stringify(init)]);
  return JSON.parse(text) as Answer | null;
}

const asked = (from: Docker.Container, url: string | null): Promise<Answer | null> => sent(from, `${url}/v1/sandbox`);

test('[R-20] a broker in a container: a gateway on its network acquires by name and reaches the url, nobody elsewhere does (real)', async () => {
  await using one = await broker('broker', newDeployment('inside'));
  await one.ready();
  const acquire = (headers: object): Promise<Answer | null> =>
    sent(gateway, 'http://broker:8080/v1/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(person('behind the gateway')),
    });
  expect(await acquire({})).toMatchObject({ status: 401 });
  const answer = await acquire({ authorization: `Bearer ${API_KEY}` });
  expect(answer).toMatchObject({ status: 201 });
  const { id, url } = answer!.body as AcquiredBody;

  const container = docker.getContainer(`${one.deployment}-${id}`);
  const { NetworkSettings, HostConfig } = await container.inspect();
  const networks = Object.entries(NetworkSettings.Networks);
  expect(networks.map(([name]) => name)).toEqual([`${run}-inside`]);
  expect(url).toBe(`http://${networks[0]![1].IPAddress}:8080`);
  expect(HostConfig.PortBindings).toEqual({});

  expect(await asked(gateway, url)).toMatchObject({ status: 200 });
  expect(await asked(stranger, url)).toBeNull();
  const address = (await one.container.inspect()).NetworkSettings.Networks[`${run}-inside`]!.IPAddress;
  expect(await sent(gateway, `http://${address}:8080/healthz`)).toMatchObject({ status: 200 });
  expect(await sent(stranger, `http://${address}:8080/healthz`)).toBeNull();
});

test('[R-20] [T-07] two brokers in containers with Redis beside them are one fleet: one is killed, the url goes on answering (real)', async () => {
  await start(
    redisImage.name,
    `${run}-inside`,
    { Cmd: ['redis-server', '--protected-mode', 'no', '--maxmemory-policy', 'noeviction', '--save', ''] },
    'redis',
  );
  const deployment = newDeployment('inside');
  const shared = {
    store: { type: 'redis', url: 'redis://redis:6379' },
    lease: { duration: '3s', renewInterval: '1s' },
    runtime: {
      docker: { address: 'network', network: `${run}-inside`, namePrefix: deployment, timeout: '2900ms' },
    },
  };
  await using first = await broker('broker-1', deployment, shared);
  await using second = await broker('broker-2', deployment, shared);
  await Promise.all([first.ready(), second.ready()]);

  const here = await first.api.acquire(person('shared'));
  const there = await second.api.acquire(person('shared'));
  expect(here).toMatchObject({ status: 201, body: { owner: expect.stringMatching(/^broker-1:/) } });
  expect(there).toMatchObject({ status: 200, body: { id: here.body.id, url: here.body.url, origin: 'reused' } });
  expect(there.body.owner).toMatch(/^broker-2:/);

  await second.container.kill();
  expect(await asked(gateway, here.body.url)).toMatchObject({ status: 200 });
  const adopted = await eventually(async () => {
    const { body } = await first.api.get(here.body.id);
    return body.owner.startsWith('broker-1:') && body;
  }, 20_000);
  expect(adopted).toMatchObject({ state: 'active', url: here.body.url, holds: 2 });
  expect(await asked(gateway, here.body.url)).toMatchObject({ status: 200 });
});
