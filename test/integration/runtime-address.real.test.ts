import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { asSandboxId, type ContainerId } from '../../src/domain/ids.ts';
import { sandboxName } from '../../src/domain/names.ts';
import type { DockerRuntimeOptions } from '../../src/runtime/docker-options.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { type AcquireWish, person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { dockerClient, dockerRuntime, newDeployment, sweep } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';
import { createdBy, useTinyImage } from '../support/tiny-image.ts';

const HAS_IPV6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
const FAMILIES = [
  { host: '127.0.0.1', other: '127.0.0.2', where: '127.0.0.1' },
  // In place of IPv6's own a further IPv4 address, and the title says so.
  HAS_IPV6
    ? { host: '::1', other: '127.0.0.1', where: '::1' }
    : { host: '127.0.0.3', other: '127.0.0.1', where: '127.0.0.3, for want of IPv6,' },
];

const docker = dockerClient();
const { readyBroker } = useBrokers();
const image = useTinyImage();
let deployment: string;
beforeEach(() => {
  deployment = newDeployment('address');
});
afterEach(async () => {
  await sweep(deployment);
});

function open(changes: Partial<DockerRuntimeOptions>): DockerRuntime {
  return dockerRuntime({ deployment, namePrefix: deployment, profiles: new Map(), ...changes });
}

async function started(runtime: DockerRuntime): Promise<ContainerId> {
  const container = await createdBy(runtime, tinyProfile(image.name));
  await runtime.start(container);
  return container;
}

/** What is at a url, or null when nothing answers. */
async function read(url: string | null, path = '/v1/sandbox'): Promise<string | null> {
  const reply = await fetch(`${url}${path}`).catch(() => null);
  return reply === null ? null : (await reply.text()).trim();
}

test.each(FAMILIES)('[R-07] [R-08] on $where the url has that address and its port, and no other', async (family) => {
  const runtime = open({ bindHost: family.host, advertiseHost: family.host });
  const container = await started(runtime);
  const { url } = await runtime.waitReady(container, tinyProfile(image.name), 20_000);
  const { hostname, port } = new URL(url);
  expect(hostname).toBe(family.host.includes(':') ? `[${family.host}]` : family.host);
  expect(await read(url)).toContain('ok');
  expect(await read(`http://${family.other}:${port}`)).toBeNull();
  expect(await runtime.list()).toMatchObject([{ url }]);
  await runtime.close();
});

test('[R-07] the broker probes by probeHost and tells callers advertiseHost', async () => {
  const hosts = { bindHost: '127.0.0.4', advertiseHost: 'sandboxes.invalid' };
  const runtime = open({ ...hosts, probeHost: '127.0.0.4' });
  const container = await started(runtime);
  const { url } = await runtime.waitReady(container, tinyProfile(image.name), 20_000);
  const { hostname, port } = new URL(url);
  expect(hostname).toBe('sandboxes.invalid');
  expect(await read(`http://127.0.0.4:${port}`)).toContain('ok');
  await runtime.close();
  const blind = open({ ...hosts, probeHost: '127.0.0.5' });
  await expect(blind.waitReady(container, tinyProfile(image.name), 1_000)).rejects.toMatchObject({
    code: 'sandbox_not_ready',
    message: expect.stringContaining('no status ever came'),
  });
  await blind.close();
});

/** Writes into a sandbox whose it is. */
async function sign({ deployment }: BrokerProcess, id: string, who: string): Promise<string> {
  const container = docker.getContainer(sandboxName(deployment, asSandboxId(id)));
  const Cmd = ['/bin/busybox', 'sh', '-c', `echo ${who} > /www/who`];
  const exec = await container.exec({ Cmd, AttachStdout: true });
  for await (const _ of await exec.start({}));
  return (await container.inspect()).Id;
}

test('[R-07] containers that were restarted in another order: each caller gets its own, at once (real)', async () => {
  await using broker = await readyBroker({ overrides: { profiles: { default: { image: image.name } } } });
  const people = ['a', 'b', 'c'];
  const wish: AcquireWish = { waitMs: 20_000 };
  const first = await Promise.all(people.map((who) => broker.api.acquire(person(who), wish)));
  const urls = first.map(({ body }) => body.url);
  const ids = await Promise.all(people.map((who, index) => sign(broker, first[index]!.body.id, who)));
  // Frozen, so that all of it is done before the broker hears of any of it.
  broker.signal('SIGSTOP');
  for (const id of ids) await docker.getContainer(id).stop({ t: 0 });
  for (const id of ids.toReversed()) await docker.getContainer(id).start();
  broker.signal('SIGCONT');
  for (let round = 1; round <= 3; round += 1) {
    const again = await Promise.all(people.map((who) => broker.api.acquire(person(who), wish)));
    expect(await Promise.all(again.map(({ body }) => read(body.url, '/who')))).toEqual(people);
    for (const { body } of again) expect(urls).not.toContain(body.url);
  }
  expect((await broker.api.list()).body.items).toHaveLength(3);
});
