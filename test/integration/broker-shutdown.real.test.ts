import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { sandboxName } from '../../src/domain/names.ts';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import type { Tree } from '../support/broker-settings.ts';
import { dockerClient, eventually, leftovers, newDeployment } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { useTinyImage } from '../support/tiny-image.ts';

const { launchBroker, readyBroker } = useBrokers();
const docker = dockerClient();
const START = /^POST \/containers\/[^/]+\/start/;

const tiny = useTinyImage();

const settings = (more: Tree = {}) => ({ profiles: { default: { image: tiny.name } }, ...more });
/** One call may take longer than the drain. */
const patient = (proxy: EngineProxy, drainTimeout: string) =>
  settings({
    lease: { duration: '40s' },
    runtime: { docker: { socketPath: proxy.socketPath, timeout: '30s' } },
    shutdown: { drainTimeout },
  });
const containersOf = async ({ deployment }: BrokerProcess) => (await leftovers(deployment)).containers;
const containerOf = async ({ deployment }: BrokerProcess, id: string): Promise<string> =>
  (await docker.getContainer(sandboxName(deployment, id as never)).inspect()).Id;

async function connection({ api }: BrokerProcess): Promise<Socket> {
  const { hostname: host, port } = new URL(api.url);
  const socket = createConnection({ host, port: Number(port) }).on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** A connection that has had its answer and is kept. */
async function keptConnection(broker: BrokerProcess): Promise<Socket> {
  const socket = await connection(broker);
  socket.write('GET /healthz HTTP/1.1\r\nHost: broker\r\n\r\n');
  await once(socket, 'data');
  return socket;
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  test(`[S-01] ${signal}: not ready first, then what is in flight finishes, and idle connections hold nothing up (real)`, async () => {
    await using proxy = await EngineProxy.open();
    await using broker = await readyBroker({ overrides: patient(proxy, '25s') });
    const { api } = broker;
    const start = proxy.fault(START, { kind: 'hold' });
    const idle = await keptConnection(broker);
    const inFlight = api.acquire(person('a'));
    await start.reached;
    broker.signal(signal);
    await eventually(async () => (await api.readyz()).status === 503);
    expect((await api.healthz()).status).toBe(200);
    const late = await api.acquire(person('b'));
    expect(late.status).toBe(503);
    expect(late.body).toMatchObject({ code: 'shutting_down', retryable: true });
    expect(late.headers['retry-after']).toBe('1');
    start.lift();
    expect((await inFlight).status).toBe(201);
    const answered = performance.now();
    expect(await broker.ended()).toMatchObject({ code: 0, signal: null });
    expect(performance.now() - answered).toBeLessThan(15_000);
    expect(await containersOf(broker)).toEqual([]);
    idle.destroy();
  });
}

test('[S-01] a connection on which nothing was ever asked holds nothing up (real)', async () => {
  await using broker = await readyBroker({ overrides: settings({ shutdown: { drainTimeout: '25s' } }) });
  const socket = await connection(broker);
  const began = performance.now();
  broker.signal('SIGTERM');
  expect((await broker.ended()).code).toBe(0);
  expect(performance.now() - began).toBeLessThan(15_000);
  socket.destroy();
});

test('[S-01] what does not finish while it drains is told 503, and the process ends in time (real)', async () => {
  await using proxy = await EngineProxy.open();
  await using broker = await readyBroker({ overrides: patient(proxy, '8s') });
  const start = proxy.fault(START, { kind: 'hold' });
  const inFlight = broker.api.acquire(person('a'));
  await start.reached;
  const began = performance.now();
  broker.signal('SIGTERM');
  const { status, body } = await inFlight;
  expect(status).toBe(503);
  expect(body).toMatchObject({ code: 'shutting_down', retryable: true });
  expect((await broker.ended()).code).toBe(0);
  expect(performance.now() - began).toBeLessThan(15_000);
  expect(await containersOf(broker)).toEqual([]);
});

test('[S-01] a second signal ends the process at once (real)', async () => {
  await using proxy = await EngineProxy.open();
  await using broker = await readyBroker({ overrides: patient(proxy, '25s') });
  const start = proxy.fault(START, { kind: 'hold' });
  const inFlight = expect(broker.api.acquire(person('a'))).rejects.toThrow();
  await start.reached;
  broker.signal('SIGTERM');
  await broker.logged(({ msg }) => msg.startsWith('shutting down; a second signal'));
  const began = performance.now();
  broker.signal('SIGTERM');
  expect((await broker.ended()).code).toBe(1);
  expect(performance.now() - began).toBeLessThan(10_000);
  await inFlight;
});

test('[S-02] with the memory store what was started is removed, held or not (real)', async () => {
  await using broker = await readyBroker({ overrides: settings() });
  const [first] = await Promise.all(['a', 'b'].map((who) => broker.api.acquire(person(who))));
  await broker.api.release(first!.body);
  broker.signal('SIGTERM');
  expect((await broker.ended()).code).toBe(0);
  expect(broker.events('removed')).toHaveLength(2);
  expect(await containersOf(broker)).toEqual([]);
});

test('[S-02] [S-05] what is kept goes on; the next broker removes what it handed out, not what it only adopted (real)', async () => {
  const deployment = newDeployment('keep');
  await using first = await readyBroker({ overrides: settings({ deployment, shutdown: { sandboxes: 'keep' } }) });
  const [adopted, handedOut] = await Promise.all(
    ['adopted', 'handed out'].map(async (who) => (await first.api.acquire(person(who))).body),
  );
  const [stays, goes] = await Promise.all([adopted!, handedOut!].map(({ id }) => containerOf(first, id)));
  first.signal('SIGTERM');
  expect((await first.ended()).code).toBe(0);
  expect((await containersOf(first)).sort()).toEqual([stays!, goes!].sort());
  expect((await fetch(`${adopted!.url}/v1/sandbox`)).status).toBe(200);

  await using second = await readyBroker({ overrides: settings({ deployment }) });
  expect(
    second
      .events('adopted')
      .map(({ container }) => container)
      .sort(),
  ).toEqual([stays!, goes!].sort());
  const found = await second.api.acquire(person('handed out'));
  expect(found.status).toBe(200);
  expect(found.body).toMatchObject({ id: handedOut!.id, url: handedOut!.url, holds: 2 });
  second.signal('SIGTERM');
  expect((await second.ended()).code).toBe(0);
  expect(await containersOf(second)).toEqual([stays]);
});

test('[S-05] a second broker on the memory store with the same deployment refuses to start (real)', async () => {
  await using first = await readyBroker({ overrides: settings() });
  const { deployment } = first;
  await using second = await launchBroker({ overrides: settings({ deployment }), failing: true });
  const { code, stderr, stdout } = await second.ended();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^sandbox-broker: Another broker on this host runs deployment "[^\n]+ store[^\n]*\n$/);
  expect(stderr).toContain(deployment);
  expect(stdout).not.toContain('listening');
  expect((await first.api.acquire(person('a'))).status).toBe(201);
});

/** Fails on a signal that means nothing to the broker. */
const failsOn = (code: string): string => `process.on('SIGWINCH', () => { ${code} })`;
const THROW = 'setImmediate(() => { throw new Error("out of the blue") })';
const REJECT = 'Promise.reject(new Error("out of the blue"))';
const OUT_OF_THE_BLUE = { err: { message: 'out of the blue', stack: expect.any(String) } };
const fatalLines = ({ logs }: BrokerProcess) => logs.filter(({ level }) => level === 'fatal');

for (const [what, code] of [
  ['an exception', THROW],
  ['a rejection', REJECT],
] as const) {
  test(`[S-04] ${what} that nobody caught is logged and ends the process with a code (real)`, async () => {
    await using broker = await readyBroker({ overrides: settings(), preload: failsOn(code), failing: true });
    await broker.api.acquire(person('a'));
    broker.signal('SIGWINCH');
    expect((await broker.ended()).code).toBe(1);
    expect(fatalLines(broker)).toMatchObject([OUT_OF_THE_BLUE]);
    expect(await containersOf(broker)).toEqual([]);
  });
}

test('[S-04] an exception that nobody caught is logged also while it shuts down (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = patient(proxy, '25s');
  await using broker = await readyBroker({ overrides, preload: failsOn(THROW), failing: true });
  const start = proxy.fault(START, { kind: 'hold' });
  const inFlight = broker.api.acquire(person('a')).catch(() => undefined);
  await start.reached;
  broker.signal('SIGTERM');
  await broker.logged(({ msg }) => msg.startsWith('shutting down'));
  broker.signal('SIGWINCH');
  expect((await broker.ended()).code).toBe(1);
  expect(fatalLines(broker)).toMatchObject([OUT_OF_THE_BLUE]);
  await inFlight;
});

test('[S-04] no promise is forgotten, whatever breaks off (real)', async () => {
  await using proxy = await EngineProxy.open();
  const overrides = settings({ idle: { timeout: '1s' }, runtime: { docker: { socketPath: proxy.socketPath } } });
  await using broker = await readyBroker({ overrides });
  const { api } = broker;
  for (const match of [/^GET \/images/, /^POST \/containers\/create/, START, /^GET \/containers\/json/, /./]) {
    const cut = proxy.fault(match, { kind: 'cut' });
    const who = person(String(match));
    const caller = new AbortController();
    const hungUp = expect(api.acquire(who, {}, caller.signal)).rejects.toThrow();
    await cut.reached;
    caller.abort();
    const { status, body } = await api.acquire(who, { waitMs: 200 });
    if (status >= 400) expect(body.code).toMatch(/^(runtime_unavailable|sandbox_unsettled)$/);
    await hungUp;
    cut.lift();
    const sandbox = (await api.acquire(who)).body;
    expect(sandbox.url).not.toBe(null);
    const removal = proxy.fault(/^POST \/containers\/[^/]+\/(rename|stop)/, { kind: 'cut' });
    expect((await api.destroy(sandbox.id)).status).toBe(202);
    removal.lift();
  }
  broker.signal('SIGTERM');
  expect((await broker.ended()).code).toBe(0);
  expect(broker.complaints).toEqual([]);
});
