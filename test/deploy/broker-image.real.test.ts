import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { productionPackages } from '../../scripts/image-files.ts';
import { person } from '../support/broker-client.ts';
import { BROKER_IMAGE, BrokerContainer, ensureBrokerImage, inContainer } from '../support/broker-container.ts';
import { dockerClient, leftovers, newDeployment } from '../support/docker.ts';
import { answers } from '../support/fleet.ts';
import { freePort } from '../support/redis.ts';

const root = resolve(import.meta.dirname, '../..');
const docker = dockerClient();
const DRAIN_MS = 10_000;
const LIMIT_BYTES = 200e6;

beforeAll(ensureBrokerImage, 60_000);

const start = (healthUrl?: string): Promise<BrokerContainer> =>
  BrokerContainer.start({
    deployment: newDeployment('image'),
    network: null,
    ...(healthUrl === undefined ? {} : { healthUrl }),
    settings: { shutdown: { drainTimeout: `${DRAIN_MS}ms` } },
  });

/** What a script for Node prints inside the broker's container, as JSON. */
async function seen<T>({ container }: BrokerContainer, script: string): Promise<T> {
  const { text } = await inContainer(container, ['node', '-e', `console.log(JSON.stringify(${script}))`]);
  return JSON.parse(text) as T;
}

const health = async ({ container }: BrokerContainer): Promise<string | undefined> =>
  (await container.inspect()).State.Health?.Status;

test('[A-01] [S-01] the image runs restricted, becomes healthy, serves, and ends at SIGTERM in time with code 0 and nothing left (real)', async () => {
  await using broker = await start();
  await broker.ready();
  await broker.until('healthy', async () => (await health(broker)) === 'healthy');
  const status = await seen<string>(broker, `fs.readFileSync('/proc/1/status', 'utf8')`);
  expect(await seen(broker, `fs.readFileSync('/proc/1/cmdline', 'utf8').split('\\0')[0]`)).toBe('node');
  expect(status).toMatch(/^Uid:\s+10001\s+10001\s+10001\s+10001$/m);
  expect(status).toMatch(/^Cap(Eff|Bnd):\s+0000000000000000$/m);
  expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
  expect(await seen(broker, `(() => { try { fs.writeFileSync('/tmp/x', ''); } catch (e) { return e.code; } })()`)).toBe(
    'EROFS',
  );

  const { body, status: code } = await broker.api.acquire(person('in the image'));
  expect(code).toBe(201);
  expect(await answers(body.url)).toBe(true);

  const sent = performance.now();
  const ended = broker.container.wait();
  await broker.container.kill({ signal: 'SIGTERM' });
  expect(await ended).toMatchObject({ StatusCode: 0 });
  expect(performance.now() - sent).toBeLessThan(DRAIN_MS);
  expect((await leftovers(broker.deployment)).containers).toEqual([]);
});

test('[S-01] docker stop needs no kill, and the container can be started again (real)', async () => {
  await using broker = await start();
  await broker.ready();
  expect((await broker.api.acquire(person('stopped'))).status).toBe(201);
  await broker.container.stop({ t: DRAIN_MS / 1_000 });
  const { State } = await broker.container.inspect();
  expect(State).toMatchObject({ Status: 'exited', ExitCode: 0, OOMKilled: false });
  await broker.container.start();
  await broker.ready();
});

test('a broker whose health check is not answered is unhealthy (real)', async () => {
  await using broker = await start(`http://127.0.0.1:${await freePort()}/healthz`);
  await broker.ready();
  await broker.until('unhealthy', async () => (await health(broker)) === 'unhealthy');
});

test('the image holds the production packages and the source, no secret, nothing of the tests, and is small (real)', async () => {
  await using broker = await start();
  const tree = await seen<string[]>(broker, `fs.readdirSync('/app', { recursive: true })`);
  expect(await seen(broker, `fs.readdirSync('/app').sort()`)).toEqual([
    'LICENSE',
    'config.example.yaml',
    'node_modules',
    'package.json',
    'src',
  ]);
  const manifests = tree.filter((path) => /^(node_modules\/(@[^/]+\/)?[^/]+\/)+package\.json$/.test(path));
  const expected = productionPackages(readFileSync(resolve(root, 'package-lock.json'), 'utf8'));
  expect(manifests.map((path) => path.slice(0, -'/package.json'.length)).sort()).toEqual(expected);
  expect(tree.filter((path) => !path.startsWith('node_modules/') && !/^(src|[^/]+$)/.test(path))).toEqual([]);
  expect(
    tree.filter((path) => /(^|\/)(\.env|\.git|\.npmrc|config\.yaml)$/.test(path) && !path.includes('node_modules/')),
  ).toEqual([]);

  const { Config, Size } = await docker.getImage(BROKER_IMAGE).inspect();
  expect(Config.Env?.map((line) => line.split('=')[0]).sort()).toEqual(['HEALTH_URL', 'NODE_ENV', 'PATH']);
  expect(Size).toBeLessThan(LIMIT_BYTES);
});
