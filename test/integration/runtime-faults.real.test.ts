import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sandboxId } from '../../src/domain/identity.ts';
import { asOwnerId, type ContainerId, parseFence } from '../../src/domain/ids.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { CreateRequest } from '../../src/runtime/container-runtime.ts';
import type { DockerRuntimeOptions } from '../../src/runtime/docker-options.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { HangingDaemon } from '../fakes/hanging-daemon.ts'; // the fault is the point
import { dockerClient, dockerConnection, dockerRuntime, eventually, newDeployment, sweep } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';
import { useTinyImage } from '../support/tiny-image.ts';

const docker = dockerClient();
const SECRET = 'a-very-secret-value';
const image = useTinyImage();
let daemon: HangingDaemon;
let deployment: string;
let runtime: DockerRuntime;
let profile: Profile;
beforeEach(async () => {
  deployment = newDeployment('faults');
  daemon = await HangingDaemon.open(dockerConnection());
  profile = tinyProfile(image.name);
  runtime = open();
});
afterEach(async () => {
  await runtime.close();
  await daemon[Symbol.asyncDispose]();
  await sweep(deployment);
});

function open(changes: Partial<DockerRuntimeOptions> = {}): DockerRuntime {
  return dockerRuntime({
    deployment,
    namePrefix: deployment,
    connection: daemon.connection,
    timeoutMs: 3_000,
    profiles: new Map([['default', profile]]),
    ...changes,
  });
}

function request(userId: string, changes: Partial<Profile> = {}): CreateRequest {
  const identity = { deployment, profile: 'default', userId, threadId: 't' };
  const fence = parseFence('5')!;
  const owner = asOwnerId('h:1');
  return {
    id: sandboxId(identity),
    profile: { ...profile, ...changes },
    spec: 's',
    owner,
    fence,
    userId,
    threadId: 't',
  };
}

async function run(wanted: CreateRequest): Promise<ContainerId> {
  const container = await runtime.create(wanted);
  if (container === 'name_taken') throw new Error('the name is taken');
  await runtime.start(container);
  return container;
}

test('[R-01] one list call tells of 30 containers whatever reconcile needs', async () => {
  const made = await Promise.all(Array.from({ length: 30 }, (_, index) => runtime.create(request(`u${index}`))));
  const before = daemon.requests.length;
  const list = await runtime.list();
  expect(daemon.requests.length - before).toBe(1);
  expect(new Set(list.map(({ id }) => id))).toEqual(new Set(made));
  expect(new Set(list.map(({ labels }) => labels.userId)).size).toBe(30);
});

test('[R-11] a create whose reply was lost is found by its name: one container, no orphan', async () => {
  daemon.on(/POST \/containers\/create/, { kind: 'lose' }, 1);
  const wanted = request('u');
  await expect(runtime.create(wanted)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(await runtime.create(wanted)).toBe('name_taken');
  const seen = await runtime.look({ sandbox: wanted.id });
  expect(seen).toMatchObject({ kind: 'stopped', container: { labels: { userId: 'u', fence: 5 } } });
  expect(await runtime.list()).toHaveLength(1);
});

test('[R-19] a rename whose reply was lost is known not to be this call', async () => {
  const wanted = request('u');
  const container = await run(wanted);
  daemon.on(/rename/, { kind: 'lose' }, 1);
  await expect(runtime.condemn(wanted.id, container)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(await runtime.condemn(wanted.id, container)).toBe(false);
});

test('[R-10] a call that hangs holds up no other, and the daemon is used again once it answers', async () => {
  const wanted = request('u');
  const container = await run(wanted);
  await runtime.condemn(wanted.id, container);
  daemon.on(/stop/, { kind: 'hang' });
  const stop = runtime.remove(wanted.id, container, 'stop').catch((error) => error);
  const other = await run(request('v'));
  expect(await runtime.look({ container: other })).toMatchObject({ kind: 'running' });
  expect(await stop).toMatchObject({ code: 'runtime_timeout' });
  expect(await runtime.look({ container })).toMatchObject({ kind: 'running' });
  daemon.on(/./, { kind: 'half', next: 'die' });
  await expect(runtime.list()).rejects.toMatchObject({ code: expect.stringMatching(/^runtime_/) });
  expect((await runtime.look({ container })).kind).toBe('unknown');
  daemon.recover();
  expect(await runtime.remove(wanted.id, container, 'stop')).toBe('removed');
  expect(await runtime.list()).toHaveLength(1);
});

test('[R-21] a look answers while the stop of that container is in flight', async () => {
  const wanted = request('u', { environment: { MODE: 'stubborn' } });
  const container = await run(wanted);
  await runtime.condemn(wanted.id, container);
  const patient = open({ stopGraceMs: 4_000, timeoutMs: 20_000 });
  let stopping = true;
  const removal = patient.remove(wanted.id, container, 'stop').finally(() => {
    stopping = false;
  });
  await eventually(async () => daemon.count(/stop/) === 1);
  expect((await patient.look({ container })).kind).toBe('running');
  expect(await patient.look({ sandbox: wanted.id })).toEqual({ kind: 'gone' });
  expect(stopping).toBe(true);
  expect(await removal).toBe('removed');
  await patient.close();
});

test('[R-06] when the ports that the engine would choose are taken, another is found, and nothing is left behind', async () => {
  const first = await run(request('u'));
  const { url } = await runtime.waitReady(first, profile, 20_000);
  const port = Number(new URL(url).port);
  const servers: Server[] = [];
  for (let next = port + 1; next <= port + 12; next += 1) {
    const server = createServer();
    const listens = await new Promise((resolve) =>
      server.once('error', () => resolve(false)).listen(next, '127.0.0.1', () => resolve(true)),
    );
    if (listens === true) servers.push(server);
  }
  try {
    const second = await run(request('v'));
    const ready = await runtime.waitReady(second, profile, 20_000);
    expect(ready.url).not.toBe(url);
    expect((await runtime.list()).map(({ state }) => state)).toEqual(['running', 'running']);
  } finally {
    for (const server of servers) await new Promise((resolve) => server.close(resolve));
  }
});

test('[R-15] last log lines are told without the values of the environment, and at most 20 of them', async () => {
  const wanted = request('u', { environment: { MODE: 'exit', WORDS: SECRET } });
  const container = await run(wanted);
  const end = await eventually(async () => {
    const found = await runtime.postMortem(container);
    return found?.exitCode === 3 ? found : null;
  });
  expect(end.logTail.split('\n')).toHaveLength(20);
  expect(end.logTail).toContain('line 30 [redacted]');
  const error = await runtime.waitReady(container, wanted.profile, 5_000).catch((thrown) => thrown);
  expect(error.message).toContain('line 30 [redacted]');
  expect(JSON.stringify([end, error.message])).not.toContain(SECRET);
  expect(JSON.stringify(daemon.requests)).not.toContain(SECRET);
  expect(JSON.stringify(await docker.listContainers({ all: true, filters: { id: [container] } }))).not.toContain(
    SECRET,
  );
});

test('[R-18] a container killed for its memory is told so', async () => {
  const resources = { memoryBytes: 8 * 1024 * 1024, cpus: 1, pids: 64, shmBytes: 1024 * 1024 };
  const container = await run(request('u', { environment: { MODE: 'hungry' }, resources }));
  const end = await eventually(async () => {
    const found = await runtime.postMortem(container);
    return found?.exitCode === null ? null : found;
  });
  expect(end).toMatchObject({ reason: 'out of memory' });
});
