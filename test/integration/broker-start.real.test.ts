import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { eventually, newDeployment } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';

const { launchBroker, startBroker, readyBroker } = useBrokers();

/** Lines that an operator sees at the usual level, about what went wrong. */
const warnings = ({ logs }: BrokerProcess) =>
  logs.filter(({ level, event }) => ['warn', 'error', 'fatal'].includes(level) && event !== undefined);

test('[S-03] without an engine it listens and says why it is not ready, and becomes ready by itself (real)', async () => {
  await using proxy = await EngineProxy.open('absent');
  const overrides = { runtime: { docker: { socketPath: proxy.socketPath } } };
  await using broker = await startBroker({ overrides });
  const { api } = broker;
  const failed = await broker.logged(({ event, loop }) => event === 'loop-failed' && loop === 'reconcile');
  expect(failed.detail).toContain(proxy.socketPath);
  const { status, body } = await api.readyz();
  expect(status).toBe(503);
  expect(body).toMatchObject({
    ready: false,
    because: expect.stringContaining(proxy.socketPath),
    dependencies: { store: { ok: true }, engine: { ok: false, message: expect.stringContaining(proxy.socketPath) } },
  });
  expect((await api.healthz()).status).toBe(200);
  const refused = await api.acquire(person('a'));
  expect(refused.status).toBe(503);
  expect(refused.body).toMatchObject({ code: 'runtime_unavailable', retryable: true });
  expect((await api.list()).body.items).toEqual([]);

  await proxy.listen();
  await eventually(async () => (await api.readyz()).status === 200);
  expect((await api.readyz()).body).toMatchObject({
    ready: true,
    because: null,
    dependencies: { engine: { ok: true } },
  });
  expect((await api.acquire(person('a'))).status).toBe(201);
});

test('[S-03] a wrong socket path is told in one line that says what to set (real)', async () => {
  const toDo = /start it, or point runtime\.docker or DOCKER_HOST at one/;
  const socketPath = '/nowhere/docker.sock';
  await using broker = await startBroker({ overrides: { runtime: { docker: { socketPath } } } });
  const { detail } = await broker.logged(({ event, loop }) => event === 'loop-failed' && loop === 'reconcile');
  expect(detail).toContain(socketPath);
  expect(detail).toMatch(toDo);
  // Told once more, a pass that failed the same way is no news.
  await broker.logged(({ event, loop, again }) => event === 'loop-failed' && loop === 'reconcile' && again === true);
  expect(warnings(broker).filter(({ loop }) => loop === 'reconcile')).toHaveLength(1);
  expect((await broker.api.readyz()).body.because).toMatch(toDo);
});

test('[S-03] an image that is not there and may not be pulled is told in one line that says what to do (real)', async () => {
  const image = 'sandbox-broker-test/nowhere:1';
  await using broker = await startBroker({ overrides: { profiles: { default: { image, pull: 'never' } } } });
  const { detail } = await broker.logged(({ event, loop }) => event === 'loop-failed' && loop === 'images');
  expect(detail).toBe(
    `Image ${image} of profile default is not in the engine, and its pull is "never". Build or load it.`,
  );
  await broker.logged(({ event, loop, again }) => event === 'loop-failed' && loop === 'images' && again === true);
  expect(warnings(broker)).toHaveLength(1);
  const { status, body } = await broker.api.readyz();
  expect(status).toBe(503);
  expect(body.because).toContain(detail);
  const refused = await broker.api.acquire(person('a'));
  expect(refused.status).toBe(502);
  expect(refused.body.code).toBe('image_unavailable');
  expect(refused.body.detail).toMatch(new RegExp(`${image}.*load or build it`));
});

test('[G-01] a port that is taken ends the start with one line that says what to do (real)', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  await using broker = await launchBroker({ overrides: { server: { port } }, failing: true });
  const { code, stderr } = await broker.ended();
  expect(code).toBe(1);
  expect(stderr).toBe(
    `sandbox-broker: Port ${port} on 127.0.0.1 is in use by another program. Set server.port, or stop it.\n`,
  );
  await new Promise((resolve) => other.close(resolve));
});

test('[G-01] --check tells that the configuration is valid and starts nothing (real)', async () => {
  await using broker = await launchBroker({}, ['--check']);
  expect(await broker.ended()).toEqual({
    code: 0,
    signal: null,
    stdout: 'The configuration is valid.\n',
    stderr: '',
  });
});

test('[G-01] an unknown key stops the start before it listens, also with --check, and is named (real)', async () => {
  const options = { overrides: { lease: { duraton: '3s' } }, failing: true };
  await using started = await launchBroker(options);
  await using checked = await launchBroker(options, ['--check']);
  for (const { code, stdout, stderr } of [await started.ended(), await checked.ended()]) {
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^sandbox-broker: \S+config\.yaml cannot be used:\n {2}lease\.duraton: unknown key; allowed: duration, renewInterval\n$/,
    );
  }
});

test('[H-05] without a key it does not start on an address that others can reach (real)', async () => {
  const server = { host: '0.0.0.0', port: 0 };
  await using open = await launchBroker({ overrides: { server }, failing: true });
  const { code, stdout, stderr } = await open.ended();
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/\n {2}server\.host: "0\.0\.0\.0" is refused beside auth\.keys[^\n]+set auth\.keys\n$/);
});

test('[G-05] the owner is hostname:uuid, and another one at each start (real)', async () => {
  const deployment = newDeployment('owner');
  const overrides = { deployment, log: { level: 'info' } };
  const ownerOf = async (): Promise<string> => {
    await using broker = await startBroker({ overrides });
    return (await broker.api.status()).body.owner;
  };
  const owners = [await ownerOf(), await ownerOf()];
  for (const owner of owners) {
    expect(owner.slice(0, hostname().length + 1)).toBe(`${hostname()}:`);
    expect(owner.slice(hostname().length + 1)).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  }
  expect(owners[0]).not.toBe(owners[1]);
});

test('[R-01] a pass of the reconciler is one list call, however many sandboxes there are (real)', async () => {
  await using proxy = await EngineProxy.open();
  await using broker = await readyBroker({ overrides: { runtime: { docker: { socketPath: proxy.socketPath } } } });
  const acquired = await Promise.all(['a', 'b', 'c', 'd'].map((who) => broker.api.acquire(person(who))));
  expect(acquired.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  const passes = () => broker.events('reconcile-pass').length;
  const before = { passes: passes(), calls: proxy.requests.length };
  await eventually(async () => passes() >= before.passes + 3);
  const calls = proxy.requests.slice(before.calls);
  const lists = calls.filter((line) => line.startsWith('GET /containers/json'));
  // One pass more may be under way at either end, and a pass is told a little after it was made.
  expect(Math.abs(lists.length - (passes() - before.passes))).toBeLessThanOrEqual(2);
  expect(calls.filter((line) => /^\w+ \/containers\/(?!json)/.test(line))).toEqual([]);
  expect(broker.events('reconcile-pass').at(-1)).toMatchObject({ containers: 4, steps: 0 });
});
