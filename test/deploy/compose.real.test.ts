import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { BrokerClient, person } from '../support/broker-client.ts';
import { API_KEY, BROKER_IMAGE, ensureBrokerImage, inContainer } from '../support/broker-container.ts';
import { ComposeProject } from '../support/compose.ts';
import {
  dockerClient,
  dockerConnection,
  eventually,
  leftovers,
  newDeployment,
  sweep,
  type TinyImage,
} from '../support/docker.ts';
import { buildProgramImage } from '../support/program-image.ts';
import { freePort } from '../support/redis.ts';

/**
 * docker-compose.yml as it is, with images assembled of this machine's programs in place of the registry's; all of it but
 * Grafana, which has no program here.
 */

const root = resolve(import.meta.dirname, '../..');
const docker = dockerClient();
const run = promisify(execFile);
const name = newDeployment('compose');
const BROKERS = ['broker-1', 'broker-2', 'broker-3'] as const;
const images: TinyImage[] = [];
const gateways: Docker.Container[] = [];
let project: ComposeProject;
let api: BrokerClient;
let variables: Record<string, string>;

beforeAll(async () => {
  await ensureBrokerImage();
  const [redis, haproxy, prometheus] = await Promise.all([
    buildProgramImage(['redis-server', 'redis-cli'], { folders: ['data'] }),
    buildProgramImage(['haproxy']),
    buildProgramImage(['prometheus'], { folders: ['prometheus'], entrypoint: 'prometheus' }),
  ]);
  images.push(redis, haproxy, prometheus);
  const connection = dockerConnection();
  const socket = 'socketPath' in connection ? connection.socketPath : '/var/run/docker.sock';
  const port = await freePort();
  variables = {
    BROKER_API_KEY: API_KEY,
    REDIS_PASSWORD: 'secret',
    GRAFANA_PASSWORD: 'secret',
    DOCKER_GID: String((await stat(socket)).gid),
    DOCKER_SOCKET: socket,
    BROKER_PORT: String(port),
    DEPLOYMENT: name,
    SANDBOX_NETWORK: `${name}-sandboxes`,
    REDIS_IMAGE: redis.name,
    HAPROXY_IMAGE: haproxy.name,
    PROMETHEUS_IMAGE: prometheus.name,
  };
  project = new ComposeProject(name, variables);
  api = new BrokerClient(`http://127.0.0.1:${port}`, API_KEY);
}, 60_000);

afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  for (const gateway of gateways) await gateway.remove({ force: true });
  await project?.try('stop', '-t', '5');
  await sweep(name);
  await project?.try('down', '-v', '-t', '5');
  for (const image of images) await image[Symbol.asyncDispose]();
});

test('compose takes the file, and says which variable is missing and where to set it (real)', async () => {
  expect(await project.try('config', '-q')).toEqual({ code: 0, text: '' });
  const secrets = ['BROKER_API_KEY', 'REDIS_PASSWORD', 'GRAFANA_PASSWORD', 'DOCKER_GID'];
  const without = secrets.map(async (missing) => {
    const { [missing]: _, ...others } = variables;
    const { code, text } = await new ComposeProject(name, others).try('config', '-q');
    expect(code, missing).not.toBe(0);
    expect(text).toContain(missing);
    expect(text).toContain('is not set; copy deploy/compose/.env.example to .env and fill it in');
  });
  await Promise.all(without);
});

test('HAProxy and Prometheus take their configurations (real)', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'compose-'));
  try {
    await copyFile(resolve(root, 'deploy/compose/prometheus.yml'), join(folder, 'prometheus.yml'));
    await copyFile(resolve(root, 'helm/sandbox-broker/files/alerts.yaml'), join(folder, 'alerts.yaml'));
    const { stdout } = await run('promtool', ['check', 'config', join(folder, 'prometheus.yml')]);
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  const config = resolve(root, 'deploy/compose/haproxy.cfg');
  expect((await run('haproxy', ['-c', '-f', config], { env })).stdout).toContain('Configuration file is valid');
});

/** What Node prints inside a container for a request; null when nobody answers. */
async function reply(from: Docker.Container, url: string): Promise<{ status: number; text: string } | null> {
  const script = `fetch(process.argv[1], { signal: AbortSignal.timeout(5_000) })
    .then(async (reply) => ({ status: reply.status, text: await reply.text() }), () => null)
    .then((answer) => { console.log(JSON.stringify(answer)); process.exit(); })`;
  return JSON.parse((await inContainer(from, ['node', '-e', script, url])).text);
}

/** Which of these ports a sandbox can connect to. */
async function reachedFrom(sandbox: Docker.Container, ports: Readonly<Record<string, string>>): Promise<string[]> {
  const reached = Object.entries(ports).map(async ([what, address]) => {
    const [host, port] = address.split(':');
    const command = `echo | /bin/busybox nc -w 2 ${host} ${port} >/dev/null 2>&1`;
    return (await inContainer(sandbox, ['/bin/sh', '-c', command])).code === 0 ? [what] : [];
  });
  return (await Promise.all(reached)).flat();
}

const hostOf = ({ owner }: { readonly owner: string }): string => owner.split(':')[0]!;

test('[R-20] [S-01] [A-02] three replicas behind the load balancer: each serves, one is killed, one is stopped, no request fails (real)', {
  timeout: 120_000,
}, async () => {
  await project.do('up', '-d', ...BROKERS, 'redis', 'lb', 'prometheus');
  const seen = new Set<string>();
  await eventually(async () => {
    const answer = await api.status().catch(() => null);
    if (answer?.status === 200) seen.add(hostOf(answer.body));
    return seen.size === BROKERS.length;
  }, 40_000);

  const taken: AcquiredBody[] = [];
  for (let n = 0; n < 6; n += 1) {
    const { status, body } = await api.acquire(person(`${n}`));
    expect(status).toBe(201);
    taken.push(body);
  }
  expect(new Set(taken.map(hostOf))).toEqual(new Set(BROKERS));

  const gateway = await startGateway();
  const [first, second] = taken;
  expect(await reply(gateway, `${first!.url}/v1/sandbox`)).toMatchObject({ status: 200 });
  expect((await api.call('GET', '/metrics')).status).toBe(404);
  expect((await new BrokerClient(api.url).acquire(person('without a key'))).status).toBe(401);

  const broker = await project.addresses('broker-1');
  const redis = await project.addresses('redis');
  const prometheus = await project.addresses('prometheus');
  const lb = await project.addresses('lb');
  const sandbox = docker.getContainer(`sandbox-${first!.id}`);
  expect(Object.keys((await sandbox.inspect()).NetworkSettings.Networks)).toEqual([variables.SANDBOX_NETWORK]);
  const reached = await reachedFrom(sandbox, {
    'the API': `${broker[variables.SANDBOX_NETWORK!]}:8080`,
    'the API on control': `${broker.control}:8080`,
    Redis: `${redis.store}:6379`,
    Prometheus: `${prometheus.monitoring}:9090`,
    'the load balancer': `${lb.front}:8080`,
    'a neighbour': new URL(second!.url!).host,
  });
  expect(reached).toEqual(['a neighbour']);

  // While all three are there.
  const up = `http://prometheus:9090/api/v1/query?query=${encodeURIComponent('count(max_over_time(up{job="sandbox-broker"}[5m]) == 1)')}`;
  const asker = await project.container('broker-3');
  await eventually(async () => (await reply(asker, up))?.text.includes('"3"]') ?? false, 25_000);

  const doomed = taken.find((each) => hostOf(each) === 'broker-2')!;
  await (await project.container('broker-2')).kill();
  expect(await reply(gateway, `${doomed.url}/v1/sandbox`)).toMatchObject({ status: 200 });
  const again = await Promise.all(taken.map((_, n) => api.acquire(person(`${n}`))));
  expect(again.map(({ status, body }) => [status, body.url])).toEqual(taken.map(({ url }) => [200, url]));

  const over = new AbortController();
  const statuses: number[] = [];
  const load = (async () => {
    while (!over.signal.aborted) statuses.push((await api.acquire(person('0'))).status);
  })();
  await project.do('stop', 'broker-1');
  over.abort();
  await load;
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect((await (await project.container('broker-1')).inspect()).State).toMatchObject({
    ExitCode: 0,
    OOMKilled: false,
  });
  expect(await reply(gateway, `${first!.url}/v1/sandbox`)).toMatchObject({ status: 200 });

  await gateway.remove({ force: true });
  gateways.length = 0;
  await project.do('stop');
  expect((await leftovers(name)).containers).toHaveLength(taken.length);
  await sweep(name);
  await project.do('down', '-v');
  expect(await project.left()).toEqual([]);
  expect(await leftovers(name)).toEqual({ containers: [], networks: [], volumes: [] });
});

/** A container where gateways are: on the load balancer's network and the sandboxes'. */
async function startGateway(): Promise<Docker.Container> {
  const container = await docker.createContainer({
    Image: BROKER_IMAGE,
    Entrypoint: ['node', '-e', 'setInterval(() => {}, 60_000)'],
    Cmd: [],
    Labels: { 'sandbox-broker-test': name },
    HostConfig: { NetworkMode: variables.SANDBOX_NETWORK! },
  });
  gateways.push(container);
  await container.start();
  await docker.getNetwork(`${name}_front`).connect({ Container: container.id });
  expect(await reply(container, 'http://lb:8080/healthz')).toMatchObject({ status: 200 });
  return container;
}
