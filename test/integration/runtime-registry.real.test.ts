import { afterAll, afterEach, expect, test } from 'vitest';
import { type AcquireWish, person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';
import type { Tree } from '../support/broker-settings.ts';
import { dockerClient, dockerRuntime, eventually, leftovers, newDeployment } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { tinyProfile } from '../support/profiles.ts';
import { RedisServer } from '../support/redis.ts';
import { type Credentials, type Delivery, Registry } from '../support/registry.ts';

const PULL = /^POST \/images\/create/;
const CREATE = /^POST \/containers\/create/;
const LOOK = /^GET \/images\//;
const RIGHT: Credentials = { username: 'robot', password: 'a-registry-password' };
const WRONG: Credentials = { username: 'robot', password: 'not-the-password' };

const docker = dockerClient();
const { startBroker } = useBrokers();
const images = new Set<string>();
let perTest = new AsyncDisposableStack();

afterEach(async () => {
  await perTest.disposeAsync();
  perTest = new AsyncDisposableStack();
});
afterAll(async () => {
  for (const image of images) {
    await docker
      .getImage(image)
      .remove({ force: true })
      .catch((error) => expect(error.statusCode).toBe(404));
  }
});

async function openRegistry(delivery: Delivery = { kind: 'whole' }, credentials: Credentials | null = null) {
  const registry = perTest.use(await Registry.open(credentials));
  registry.delivery = delivery;
  images.add(registry.image);
  return registry;
}

const pulled = (image: string, registryAuth: Credentials | null = null): Tree => ({
  image,
  pull: 'if-missing',
  registryAuth,
});

/** A broker that reaches the engine through a proxy of its own, before it has the images that it pulls ahead. */
async function brokerWith(overrides: Tree) {
  const proxy = perTest.use(await EngineProxy.open());
  const runtime = { docker: { socketPath: proxy.socketPath, timeout: '2900ms' } };
  const broker = perTest.use(await startBroker({ overrides: { ...overrides, runtime } }));
  await broker.logged(({ event }) => event === 'reconcile-pass');
  return { broker, proxy };
}

test('[R-13] ten acquires of a missing image are one pull, and its beginning and end are logged (real)', async () => {
  const registry = await openRegistry({ kind: 'hold' });
  const { broker, proxy } = await brokerWith({ profiles: { default: pulled(registry.image) } });
  const wish: AcquireWish = { waitMs: 20_000 };
  const acquires = Array.from({ length: 10 }, (_, index) => broker.api.acquire(person(`u${index}`), wish));
  await registry.halfway;
  await eventually(async () => proxy.count(LOOK) >= 10);
  expect(proxy.count(CREATE)).toBe(0);
  registry.resume();
  expect((await Promise.all(acquires)).map(({ status }) => status)).toEqual(Array(10).fill(201));
  expect(proxy.count(PULL)).toBe(1);
  expect(proxy.count(CREATE)).toBe(10);
  const told = broker.events('image-pull').map(({ progress }) => progress);
  expect([told[0], told.at(-1)]).toEqual(['begins', 'done']);
});

test('[R-13] a slow pull that moves outlives lease, call and start, keeps its lease, and tells how far it is (real)', async () => {
  const registry = await openRegistry({ kind: 'slow', ms: 9_000 });
  const redis = perTest.use(await RedisServer.start());
  const settings = {
    deployment: newDeployment('slow'),
    store: { type: 'redis', url: redis.url, commandTimeout: '700ms' },
    lease: { duration: '3s', renewInterval: '700ms' },
    acquire: { startTimeout: '5s' },
    profiles: { default: { ...pulled(registry.image), readiness: { timeout: '5s' } } },
  };
  const [one, other] = await Promise.all([brokerWith(settings), brokerWith(settings)]);
  const first = one.broker.api.acquire(person('u'), { waitMs: 20_000 });
  await registry.halfway;
  const second = other.broker.api.acquire(person('u'), { waitMs: 20_000 });
  const [{ status, body }, { body: same }] = await Promise.all([first, second]);
  expect(status).toBe(201);
  expect(same).toMatchObject({ id: body.id, url: body.url });
  expect(registry.layerRequests).toBe(1);
  expect([one, other].map(({ proxy }) => proxy.count(CREATE))).toEqual([1, 0]);
  const told = one.broker.events('image-pull').map(({ progress }) => String(progress));
  expect(told.at(-1)).toBe('done');
  expect(told.slice(1, -1).length).toBeGreaterThanOrEqual(1);
  for (const words of told.slice(1, -1)) expect(words).toMatch(/^\d of 2 layers, \d+\.\d of \d+\.\d MB$/);
});

test('[R-13] [R-15] a failed pull says why without the credentials, creates nothing, and is tried afresh (real)', async () => {
  const whole: Delivery = { kind: 'whole' };
  const [shut, shutToo, entered] = await Promise.all([1, 2, 3].map(() => openRegistry(whole, RIGHT)));
  const cut = await openRegistry({ kind: 'cut' });
  const corrupt = await openRegistry({ kind: 'corrupt' });
  const profiles = {
    missing: pulled(`${corrupt.image}00`),
    cut: pulled(cut.image),
    corrupt: pulled(corrupt.image),
    keyless: pulled(shut!.image),
    wrong: pulled(shutToo!.image, WRONG),
    right: pulled(entered!.image, RIGHT),
  };
  const { broker, proxy } = await brokerWith({ profiles: { ...profiles, default: profiles.right } });
  const ask = (profile: string) => broker.api.acquire(person('u'), { profile, waitMs: 20_000 });
  const failing = ['missing', 'cut', 'corrupt', 'keyless', 'wrong'];
  const answers = await Promise.all(failing.map(ask));
  const words = [/not here|not found/, /had enough/, /verification failed/, /no basic auth/, /no entry with/];
  for (const [index, { status, body }] of answers.entries()) {
    expect(body).toMatchObject({ status: 502, code: 'image_unavailable' });
    expect(status).toBe(502);
    expect(body.detail).toMatch(words[index]!);
  }
  expect(proxy.count(CREATE)).toBe(0);
  expect((await leftovers(broker.deployment)).containers).toEqual([]);

  cut.delivery = whole;
  corrupt.delivery = whole;
  const afresh = await Promise.all(['right', 'cut', 'corrupt'].map(ask));
  expect(afresh.map(({ status }) => status)).toEqual([201, 201, 201]);

  const written = JSON.stringify([broker.logs, answers, afresh, [...(await broker.api.metrics()).keys()]]);
  expect(written).toContain('no entry with');
  for (const { username, password } of [RIGHT, WRONG]) {
    expect(written).not.toContain(password);
    expect(written).not.toContain(Buffer.from(`${username}:${password}`).toString('base64'));
  }
});

test('[R-13] a pull is bounded by its silence, not by its length, and is over when the engine goes away (real)', async () => {
  const slow = await openRegistry({ kind: 'slow', ms: 3_000 });
  const silent = await openRegistry({ kind: 'hold' });
  const broken = await openRegistry({ kind: 'hold' });
  const proxy = perTest.use(await EngineProxy.open());
  const profileOf = ({ image }: Registry) => tinyProfile(image, { pull: 'if-missing' });
  const through = (connection: { socketPath: string } | null) =>
    perTest.adopt(
      dockerRuntime({
        deployment: newDeployment('pull'),
        profiles: new Map(),
        timeoutMs: 2_500,
        pullIdleMs: 1_500,
        ...(connection === null ? {} : { connection }),
      }),
      (runtime) => runtime.close(),
    );
  const runtime = through(null);
  const moving = runtime.ensureImage(profileOf(slow));
  await expect(runtime.ensureImage(profileOf(silent))).rejects.toMatchObject({
    code: 'image_unavailable',
    message: expect.stringContaining('nothing moved for 1500 ms'),
  });
  await moving;
  expect(await runtime.hasImage(profileOf(slow))).toBe(true);
  expect(await runtime.hasImage(profileOf(silent))).toBe(false);

  const lost = through(proxy).ensureImage(profileOf(broken));
  await broken.halfway;
  proxy.cutAll();
  await expect(lost).rejects.toMatchObject({ code: 'image_unavailable' });
  expect(await runtime.hasImage(profileOf(broken))).toBe(false);
});
