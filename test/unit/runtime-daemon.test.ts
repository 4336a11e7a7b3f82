import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { asContainerId, asOwnerId, asSandboxId, parseFence } from '../../src/domain/ids.ts';
import type { DockerRuntimeOptions } from '../../src/runtime/docker-options.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { HangingDaemon } from '../fakes/hanging-daemon.ts';
import { dockerRuntime } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';

const ID = asSandboxId('a'.repeat(32));
const CONTAINER = asContainerId('c'.repeat(64));
const TIMEOUT_MS = 200;
const PROFILE = tinyProfile('tiny:1', { environment: { TOKEN: 'very-secret' } });
const REQUEST = {
  id: ID,
  profile: PROFILE,
  spec: 's',
  owner: asOwnerId('h:1'),
  fence: parseFence('1')!,
  userId: 'u',
  threadId: 't',
};

let daemon: HangingDaemon;
let runtime: DockerRuntime;
beforeEach(async () => {
  daemon = await HangingDaemon.open();
  runtime = open();
});
afterEach(async () => {
  await runtime.close();
  await daemon[Symbol.asyncDispose]();
});

function open(changes: Partial<DockerRuntimeOptions> = {}): DockerRuntime {
  return dockerRuntime({
    deployment: 'd',
    namePrefix: 'sandbox',
    profiles: new Map([['default', PROFILE]]),
    connection: daemon.connection,
    timeoutMs: TIMEOUT_MS,
    network: 'configured',
    ...changes,
  });
}

const reply = (status: number, message: string) => ({ kind: 'reply', status, body: { message } }) as const;
const listed = (Labels: Record<string, string>, Names = [`/sandbox-${ID}`]) =>
  ({ kind: 'reply', status: 200, body: [{ Id: CONTAINER, Names, Labels, State: 'running' }] }) as const;

const SPARE = { container: CONTAINER, name: 'sandbox-spare-1' };

/** Every call of the port that asks the daemon, and resolves or rejects with its word. */
const CALLS: Record<string, () => Promise<unknown>> = {
  mark: () => runtime.mark(),
  list: () => runtime.list(),
  hasImage: () => runtime.hasImage(PROFILE),
  ensureImage: () => runtime.ensureImage(PROFILE),
  create: () => runtime.create(REQUEST),
  createSpare: () => runtime.createSpare(REQUEST),
  dedicate: () => runtime.dedicate(ID, SPARE),
  condemnSpare: () => runtime.condemnSpare(SPARE),
  start: () => runtime.start(CONTAINER),
  condemn: () => runtime.condemn(ID, CONTAINER),
  giveBack: () => runtime.giveBack(ID, CONTAINER),
  stop: () => runtime.remove(ID, CONTAINER, 'stop'),
  kill: () => runtime.remove(ID, CONTAINER, 'kill'),
  onlyIfStopped: () => runtime.remove(ID, CONTAINER, 'onlyIfStopped'),
  postMortem: () => runtime.postMortem(CONTAINER),
  resources: () => runtime.resources(),
  ping: () => runtime.ping(),
};

for (const [kind, behaviour] of [
  ['never answers', { kind: 'hang' }],
  ['stops in the middle of a reply', { kind: 'half', next: 'hang' }],
  ['dies in the middle of a reply', { kind: 'half', next: 'die' }],
] as const) {
  test(`[R-10] every call settles by its deadline when the daemon ${kind}`, async () => {
    daemon.on(/./, behaviour);
    const sentAt = performance.now();
    const errors = await Promise.all(Object.values(CALLS).map((call) => call().then(String, (error) => error)));
    expect(performance.now() - sentAt).toBeLessThan(TIMEOUT_MS + 800);
    for (const error of errors) expect(error.code).toMatch(/^runtime_(timeout|unavailable)$/);
    expect(await runtime.look({ sandbox: ID })).toMatchObject({ kind: 'unknown' });
  });
}

test('[R-10] [A-18] a call that is given up gives its connection up, also where the daemon never answers', async () => {
  daemon.on(/./, { kind: 'hang' });
  for (let round = 0; round < 3; round += 1) {
    await Promise.allSettled(Object.values(CALLS).map((call) => call()));
  }
  expect(daemon.requests.length).toBeGreaterThanOrEqual(3 * Object.keys(CALLS).length);
  await vi.waitFor(() => expect(daemon.connections).toBe(0), { timeout: 5_000 });
});

test('[R-15] a value is hidden in a log tail also where control characters stand between its letters', async () => {
  const text = 'very-\u0000sec\u001bret, and very-secret, line\rover\n';
  const head = Buffer.from([1, 0, 0, 0, 0, 0, 0, Buffer.byteLength(text)]);
  daemon.on(/logs/, {
    kind: 'act',
    act: (response) => void response.writeHead(200).end(Buffer.concat([head, Buffer.from(text)])),
  });
  const Config = { Labels: { 'sandbox-broker.deployment': 'd' }, Env: ['TOKEN=very-secret'] };
  const State = { Status: 'exited', ExitCode: 1, FinishedAt: '2026-03-01T09:00:00Z' };
  daemon.on(/GET \/containers\/c+\/json/, { kind: 'reply', status: 200, body: { Id: CONTAINER, Config, State } });
  const end = await runtime.postMortem(CONTAINER);
  expect(end?.logTail).toBe('[redacted], and [redacted], line\nover');
});

test('[R-10] the error says what was asked, of which container, and for how long; others go on meanwhile', async () => {
  daemon.on(/stop/, { kind: 'hang' });
  daemon.on(/GET .*json/, { kind: 'reply', status: 200, body: [] });
  const stop = runtime.remove(ID, CONTAINER, 'stop').catch((error) => error);
  expect(await runtime.list()).toEqual([]);
  const error = await stop;
  expect(error.code).toBe('runtime_timeout');
  expect(error.message).toContain(`stop container sandbox-condemned-${ID}-${CONTAINER.slice(0, 12)}`);
  expect(error.message).toContain(`${TIMEOUT_MS} ms`);
});

test('[R-10] with no daemon at all every call says so, and it recovers unaided', async () => {
  const { connection } = daemon;
  await daemon[Symbol.asyncDispose]();
  for (const call of Object.values(CALLS)) await expect(call()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(await runtime.look({ container: CONTAINER })).toMatchObject({ kind: 'unknown' });
  daemon = await HangingDaemon.open();
  runtime = open();
  daemon.on(/./, { kind: 'hang' }, 1);
  await expect(runtime.list()).rejects.toMatchObject({ code: 'runtime_timeout' });
  daemon.on(/./, { kind: 'reply', status: 200, body: [] });
  expect(await runtime.list()).toEqual([]);
  expect(connection).not.toEqual(daemon.connection);
});

test('[R-10] waiting for readiness ends by its own deadline while the daemon is silent', async () => {
  daemon.on(/./, { kind: 'hang' });
  runtime = open({ timeoutMs: 60_000 });
  const sentAt = performance.now();
  await expect(runtime.waitReady(CONTAINER, PROFILE, 100)).rejects.toMatchObject({ code: 'sandbox_not_ready' });
  expect(performance.now() - sentAt).toBeLessThan(3_000);
});

test('[R-04] a failed, cut-off or senseless list is an error, never an empty list', async () => {
  const bad = [reply(500, 'no'), { kind: 'half', next: 'die' }, { kind: 'reply', status: 200 }] as const;
  for (const behaviour of [...bad, { kind: 'reply', status: 200, body: { Id: 'x' } } as const]) {
    daemon.on(/containers/, behaviour);
    await expect(runtime.list()).rejects.toMatchObject({ code: expect.stringMatching(/^runtime_/) });
    expect((await runtime.look({ sandbox: ID })).kind).toBe('unknown');
  }
});

test('[R-21] a look asks for the list only, by a name with its ends, and compares again', async () => {
  const labels = { 'sandbox-broker.deployment': 'd' };
  daemon.on(/containers/, listed(labels, [`/sandbox-${ID}2`]));
  expect(await runtime.look({ sandbox: ID })).toEqual({ kind: 'gone' });
  daemon.on(/containers/, { ...listed(labels), body: [{ Id: `${CONTAINER}0`, Labels: labels, State: 'running' }] });
  expect(await runtime.look({ container: CONTAINER })).toEqual({ kind: 'gone' });
  expect(daemon.requests).toHaveLength(2);
  for (const line of daemon.requests) expect(line).toMatch(/^GET \/containers\/json\?all=true/);
  expect(daemon.requests[0]).toContain(`^/?sandbox-${ID}$`);
});

for (const words of [
  'driver failed programming external connectivity: Bind for 127.0.0.1:32768 failed: port is already allocated',
  'Error starting userland proxy: listen tcp4 127.0.0.1:32768: bind: address already in use',
]) {
  test(`[R-06] a refused port is tried again a few times: ${words.slice(-24)}`, async () => {
    daemon.on(/start/, { kind: 'reply', status: 204 });
    daemon.on(/start/, reply(500, words), 2);
    await runtime.start(CONTAINER);
    expect(daemon.count(/start/)).toBe(3);
    daemon.on(/start/, reply(500, words));
    await expect(runtime.start(CONTAINER)).rejects.toMatchObject({ code: 'sandbox_start_failed' });
    expect(daemon.count(/start/)).toBe(8);
  });
}

test('[A-11] another reason not to start is told at once, in the words of the engine', async () => {
  daemon.on(/start/, reply(400, 'exec: "nope": executable file not found, TOKEN=very-secret'));
  const error = await runtime.start(CONTAINER).catch((thrown) => thrown);
  expect(error.code).toBe('sandbox_start_failed');
  expect(error.message).toContain('executable file not found');
  expect(error.message).not.toContain('very-secret');
  expect(daemon.count(/start/)).toBe(1);
});

test('[R-15] the environment stands in the body of a create only, and in no error', async () => {
  daemon.on(/create/, reply(400, 'invalid environment variable: TOKEN=very-secret'));
  const error = await runtime.create(REQUEST).catch((thrown) => thrown);
  expect(error.code).toBe('sandbox_start_failed');
  expect(JSON.stringify([error.message, String(error.cause), daemon.requests])).not.toContain('very-secret');
  expect(daemon.requests[0]).toBe(`POST /containers/create?name=sandbox-${ID}`);
});

test('[R-09] 304, 404, and 409 in progress count as success, the last one only once the container is gone', async () => {
  const underway = reply(409, 'removal of container c is already in progress');
  daemon.on(/stop/, { kind: 'reply', status: 304 });
  daemon.on(/DELETE/, underway);
  daemon.on(/GET .*json/, { kind: 'reply', status: 200, body: [] });
  const condemned = `/sandbox-condemned-${ID}-${CONTAINER.slice(0, 12)}`;
  daemon.on(/GET .*json/, listed({ 'sandbox-broker.deployment': 'd' }, [condemned]), 2);
  expect(await runtime.remove(ID, CONTAINER, 'stop')).toBe('removed');
  expect(daemon.count(/GET .*json/)).toBe(3);
  daemon.on(/stop|DELETE/, reply(404, 'no such container'));
  expect(await runtime.remove(ID, CONTAINER, 'stop')).toBe('removed');
  daemon.on(/DELETE/, underway);
  daemon.on(/GET .*json/, listed({ 'sandbox-broker.deployment': 'd' }, [condemned]));
  await expect(runtime.remove(ID, CONTAINER, 'kill')).rejects.toMatchObject({ code: 'runtime_timeout' });
});

test('[R-09] anything else is not reported as removed', async () => {
  daemon.on(/DELETE/, { kind: 'reply', status: 204 });
  for (const behaviour of [
    reply(500, 'driver failed to remove root filesystem'),
    reply(409, 'conflict'),
    { kind: 'hang' },
  ]) {
    daemon.on(/stop/, behaviour as never, 1);
    await expect(runtime.remove(ID, CONTAINER, 'stop')).rejects.toMatchObject({
      code: expect.stringMatching(/^runtime_/),
    });
    expect(daemon.count(/DELETE/)).toBe(0);
  }
  daemon.on(/stop/, { kind: 'reply', status: 204 });
  for (const behaviour of [reply(500, 'driver failed'), reply(409, 'container is running'), { kind: 'hang' }]) {
    daemon.on(/DELETE/, behaviour as never, 1);
    await expect(runtime.remove(ID, CONTAINER, 'stop')).rejects.toMatchObject({
      code: expect.stringMatching(/^runtime_/),
    });
  }
});

test('[R-19] an engine that cannot rename is an error, not a container that had the name', async () => {
  daemon.on(/rename/, reply(500, 'no space left on device'));
  await expect(runtime.condemn(ID, CONTAINER)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  daemon.on(/rename/, reply(409, 'Conflict. The container name is already in use'));
  await expect(runtime.condemn(ID, CONTAINER)).rejects.toMatchObject({ code: 'foreign_container' });
  await runtime.giveBack(ID, CONTAINER);
  daemon.on(/rename/, reply(400, 'Renaming a container with the same name as its current name'));
  expect(await runtime.condemn(ID, CONTAINER)).toBe(false);
});

test('[R-17] an engine that refuses our API version says so, and a mark volume of somebody else is no mark', async () => {
  daemon.on(/./, reply(400, 'client version 1.24 is too old. Minimum supported API version is 1.44'));
  await expect(runtime.ping()).rejects.toMatchObject({
    code: 'runtime_unavailable',
    message: expect.stringContaining('Minimum supported API version is 1.44'),
  });
  daemon.on(/volumes/, { kind: 'reply', status: 200, body: { Name: 'x', Labels: null } });
  await expect(runtime.mark()).rejects.toMatchObject({ code: 'runtime_unavailable' });
});
