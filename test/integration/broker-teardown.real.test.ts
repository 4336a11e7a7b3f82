import { expect, test } from 'vitest';
import { sandboxId } from '../../src/domain/identity.ts';
import { asOwnerId, asSandboxId } from '../../src/domain/ids.ts';
import { sandboxName } from '../../src/domain/names.ts';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { writeLabels } from '../../src/runtime/labels.ts';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import type { Tree } from '../support/broker-settings.ts';
import { dockerClient, eventually, leftovers } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { useTinyImage } from '../support/tiny-image.ts';

const { readyBroker } = useBrokers();
const docker = dockerClient();
const STOP = /^POST \/containers\/[^/]+\/stop/;
/** What a loaded machine may add to a time that is told. */
const SLACK_MS = 5_000;

const tiny = useTinyImage();

const settings = (more: Tree = {}) => ({ profiles: { default: { image: tiny.name } }, ...more });
/** A call that hangs is given up soon, and a removal that failed is taken up again soon. */
const brief = ({ socketPath }: EngineProxy): Tree => ({
  lease: { duration: '4s' },
  runtime: { docker: { socketPath, timeout: '3s' } },
});
const containerOf = async ({ deployment }: BrokerProcess, id: string): Promise<string> =>
  (await docker.getContainer(sandboxName(deployment, asSandboxId(id))).inspect()).Id;
const containersOf = async ({ deployment }: BrokerProcess) => (await leftovers(deployment)).containers;

async function answers(url: string | null): Promise<boolean> {
  const reply = await fetch(`${url}/v1/sandbox`).catch(() => null);
  await reply?.arrayBuffer();
  return reply?.status === 200;
}

/** When the idle reaper claimed it, epoch milliseconds. */
async function reapedAt(broker: BrokerProcess, id: string): Promise<number> {
  const { time } = await broker.logged((line) => line.event === 'claimed' && line.sandbox === id);
  return Date.parse(time);
}

for (const kind of ['idle', 'explicit'] as const) {
  test(`[A-08] an acquire does not wait for the ${kind} teardown of its sandbox whose stop hangs (real)`, async () => {
    await using proxy = await EngineProxy.open();
    const overrides = settings({
      idle: { timeout: kind === 'idle' ? '1s' : '0s' },
      runtime: { docker: { socketPath: proxy.socketPath } },
    });
    await using broker = await readyBroker({ overrides });
    const stop = proxy.fault(STOP, { kind: 'hold' });
    const first = (await broker.api.acquire(person('a'))).body;
    const old = await containerOf(broker, first.id);
    const destroyed = kind === 'idle' ? broker.api.release(first) : broker.api.destroy(first.id);
    destroyed.catch(() => undefined);
    await stop.reached;

    const { status, body } = await broker.api.acquire(person('a'));
    expect(stop.held, 'what was to be stopped hangs as before').toBe(stop.hits);
    expect(status).toBe(201);
    expect(body).toMatchObject({ id: first.id, origin: 'created', holds: 1 });
    const fresh = await containerOf(broker, first.id);
    expect(fresh).not.toBe(old);

    stop.lift();
    await eventually(async () => !(await containersOf(broker)).includes(old));
    expect((await destroyed).status).toBe(kind === 'idle' ? 200 : 204);
    expect(await containersOf(broker)).toEqual([fresh]);
    expect(await answers(body.url)).toBe(true);
  });
}

test('[T-01] unheld for the idle time, or silent for the time of a hold and then the idle time: reaped, not before (real)', async () => {
  const ttlMs = 4_000;
  const idleMs = 1_000;
  const overrides = settings({
    idle: { timeout: `${idleMs}ms` },
    holds: { ttl: `${ttlMs}ms` },
    acquire: { startTimeout: '4s' },
    profiles: { default: { image: tiny.name, readiness: { timeout: '4s' } } },
  });
  await using broker = await readyBroker({ overrides });
  const { api } = broker;
  const [left, silent, kept] = await Promise.all(
    ['a', 'b', 'c'].map(async (who) => (await api.acquire(person(who))).body),
  );
  const { warmUntil } = (await api.release(left!)).body;
  const leftAt = await reapedAt(broker, left!.id);
  expect(leftAt).toBeGreaterThanOrEqual(Date.parse(warmUntil!));
  expect(leftAt).toBeLessThan(Date.parse(warmUntil!) + SLACK_MS);

  const keptFrom = Date.parse((await api.keepalive(kept!.id, kept!.holdId)).body.lastActiveAt);
  for (const [id, from] of [
    [silent!.id, Date.parse(silent!.lastActiveAt)],
    [kept!.id, keptFrom],
  ] as const) {
    const after = (await reapedAt(broker, id)) - from;
    expect(after).toBeGreaterThanOrEqual(ttlMs + idleMs);
    expect(after).toBeLessThan(ttlMs + idleMs + SLACK_MS);
  }
  await eventually(async () => (await containersOf(broker)).length === 0);
  expect((await api.get(left!.id)).body.code).toBe('sandbox_not_found');
});

test('[T-13] reads, lists, status, metrics and health checks keep nothing alive (real)', async () => {
  await using broker = await readyBroker({ overrides: settings({ idle: { timeout: '2s' } }) });
  const { api } = broker;
  const first = (await api.acquire(person('a'))).body;
  const { lastActiveAt, warmUntil } = (await api.release(first)).body;
  let looks = 0;
  await eventually(async () => {
    const [{ status, body }] = await Promise.all([
      api.get(first.id),
      api.list({ userId: first.userId! }),
      api.status(),
      api.metrics(),
      api.readyz(),
      api.healthz(),
    ]);
    if (status === 404 || body.state === 'destroying') return true;
    expect(body).toMatchObject({ state: 'warm', lastActiveAt, warmUntil, holds: 0 });
    looks += 1;
    return false;
  });
  expect(looks).toBeGreaterThan(2);
  expect(await reapedAt(broker, first.id)).toBeLessThan(Date.parse(warmUntil!) + SLACK_MS);
});

test('[T-11] a stop that hangs is reported and tried again, and its identity is free at once (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = settings(brief(proxy));
  await using broker = await readyBroker({ overrides });
  const { api } = broker;
  const first = (await api.acquire(person('a'))).body;
  const old = await containerOf(broker, first.id);
  const stop = proxy.fault(STOP, { kind: 'hold' });

  const { status, headers, body } = await api.destroy(first.id);
  expect(status).toBe(202);
  expect(headers).toMatchObject({ location: `/v1/sandboxes/${first.id}`, 'retry-after': expect.any(String) });
  expect(body).toBe(null);
  await broker.logged(({ event, container }) => event === 'removal-failed' && container === old);
  const metrics = await api.metrics();
  expect(metrics.get('sandbox_broker_removals_total{reason="explicit",outcome="failed"}')).toBe(1);
  expect(broker.events('removed')).toEqual([]);
  expect(await containersOf(broker)).toEqual([old]);

  const again = await api.acquire(person('a'));
  expect(again.status).toBe(201);
  const fresh = await containerOf(broker, first.id);
  await eventually(async () => stop.hits > 1, 20_000);
  stop.lift();
  await broker.logged(({ event, container }) => event === 'removed' && container === old);
  expect(await containersOf(broker)).toEqual([fresh]);
  expect(await answers(again.body.url)).toBe(true);
});

test('[T-11] a stop that is refused is not counted as removed, and whoever finds it tries again (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = settings({ idle: { timeout: '1s' }, ...brief(proxy) });
  await using broker = await readyBroker({ overrides });
  const { api } = broker;
  const first = (await api.acquire(person('a'))).body;
  const container = await containerOf(broker, first.id);
  const stop = proxy.fault(STOP, { kind: 'refuse', status: 500, message: 'device or resource busy' });
  await api.release(first);
  const { detail } = await broker.logged(({ event }) => event === 'removal-failed');
  expect(detail).toContain('device or resource busy');
  expect((await api.get(first.id)).body.state).toBe('destroying');
  await eventually(async () => stop.hits > 1, 20_000);
  expect(broker.events('removed')).toEqual([]);
  expect(await containersOf(broker)).toEqual([container]);
  stop.lift();
  await eventually(async () => (await containersOf(broker)).length === 0, 20_000);
  await eventually(async () => (await api.get(first.id)).status === 404);
});

test('[T-12] one that cannot be removed stops no other, whether created, running, paused or exited (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = settings({ idle: { timeout: '1s' }, ...brief(proxy) });
  await using broker = await readyBroker({ overrides });
  const { api, deployment } = broker;
  const all: AcquiredBody[] = [];
  for (const who of ['stubborn', 'running', 'paused', 'exited']) all.push((await api.acquire(person(who))).body);
  const [stubborn, , paused, exited] = await Promise.all(all.map(({ id }) => containerOf(broker, id)));
  const condemned = new RegExp(`^(POST|DELETE) /containers/${deployment}-condemned-${all[0]!.id}`);
  const busy = proxy.fault(condemned, { kind: 'refuse', status: 500, message: 'device or resource busy' });
  await docker.getContainer(paused!).pause();
  await docker.getContainer(exited!).stop({ t: 0 });
  await leaveCreated(broker);
  await Promise.all(all.map((one) => api.release(one)));

  await eventually(async () => (await containersOf(broker)).length === 1, 25_000);
  expect(await containersOf(broker)).toEqual([stubborn]);
  expect(busy.hits).toBeGreaterThan(0);
  busy.lift();
  await eventually(async () => (await containersOf(broker)).length === 0, 20_000);
  await eventually(async () => (await api.list()).body.items.length === 0);
});

/** What a replica leaves that is killed between create and start. */
async function leaveCreated({ deployment }: BrokerProcess): Promise<void> {
  const identity = { deployment, profile: 'default', ...person('created') };
  const owner = asOwnerId('somebody:else');
  const labels = writeLabels({ deployment, profile: 'default', spec: 'none', owner, handout: null });
  await docker.createContainer({
    name: sandboxName(deployment, sandboxId(identity)),
    Image: tiny.name,
    Labels: labels,
  });
}
