import { afterEach, beforeEach, expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { PullProgress } from '../../src/runtime/pull-progress.ts';
import { HangingDaemon } from '../fakes/hanging-daemon.ts';
import { dockerRuntime, realClock } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';

const AUTH = { username: 'robot', password: 'hunter22' };
const PROFILE = tinyProfile('registry.example:5000/team/tool', { pull: 'if-missing', registryAuth: AUTH });

let daemon: HangingDaemon;
let runtime: DockerRuntime;
let events: BrokerEvent[];
let now = 0;
beforeEach(async () => {
  daemon = await HangingDaemon.open();
  events = [];
  now = 0;
  runtime = dockerRuntime({
    deployment: 'd',
    profiles: new Map([['default', PROFILE]]),
    connection: daemon.connection,
    timeoutMs: 5_000,
    pullIdleMs: 300,
    clock: { ...realClock, monotonic: () => now },
    emit: (event) => events.push(event),
  });
});
afterEach(async () => {
  await runtime.close();
  await daemon[Symbol.asyncDispose]();
});

/** The engine streams these messages, waits for the gate if there is one, and ends. */
function pulls(messages: readonly object[], gate: Promise<void> = Promise.resolve()): void {
  daemon.on(/POST \/images\/create/, {
    kind: 'act',
    act: async (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      for (const message of messages) response.write(`${JSON.stringify(message)}\r\n`);
      await gate;
      daemon.on(/GET \/images/, { kind: 'reply', status: 200, body: { Id: 'sha256:1' } });
      response.end();
    },
  });
}

test('[R-13] a missing image is pulled once for any number of waiting callers, with progress', async () => {
  const gate = Promise.withResolvers<void>();
  pulls([{ status: 'Pulling fs layer', id: 'l1' }], gate.promise);
  const waiting = Array.from({ length: 20 }, () => runtime.ensureImage(PROFILE));
  gate.resolve();
  await Promise.all(waiting);
  expect(daemon.count(/POST \/images\/create/)).toBe(1);
  expect(daemon.requests.find((line) => line.startsWith('POST'))).toBe(
    'POST /images/create?fromImage=registry.example:5000/team/tool&tag=latest',
  );
  await runtime.ensureImage(PROFILE);
  expect(daemon.count(/POST \/images\/create/)).toBe(1);
  await runtime.ensureImage({ ...PROFILE, pull: 'always' });
  expect(daemon.count(/POST \/images\/create/)).toBe(2);
  expect(events[0]).toEqual({ type: 'image-pull', image: PROFILE.image, progress: 'begins' });
});

test('[R-13] a failed pull, also one reported inside the stream, is image_unavailable, and is tried afresh', async () => {
  const inside = { errorDetail: {}, error: 'manifest unknown for robot with hunter22' };
  pulls([{ status: 'Pulling from team/tool', id: 'latest' }, inside]);
  const error = await runtime.ensureImage(PROFILE).catch((thrown) => thrown);
  expect(error.code).toBe('image_unavailable');
  expect(error.message).toContain('manifest unknown');
  expect(error.message).not.toContain('hunter22');
  daemon.recover();
  daemon.on(/create/, { kind: 'reply', status: 404, body: { message: 'pull access denied' } });
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({
    code: 'image_unavailable',
    message: expect.stringContaining('pull access denied'),
  });
  daemon.on(/create/, { kind: 'reply', status: 200, body: { status: 'done' } });
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({ code: 'image_unavailable' });
});

test('[R-13] a pull is bounded by its silence, not by its length', async () => {
  daemon.on(/create/, {
    kind: 'act',
    act: async (response) => {
      response.writeHead(200);
      for (let part = 0; part < 8; part += 1) {
        response.write(
          `{"status":"Downloading","id":"l1","progressDetail":{"current":${part}000000,"total":8000000}}\n`,
        );
        now += 2_000;
        await realClock.pause(100);
      }
      daemon.on(/GET \/images/, { kind: 'reply', status: 200, body: { Id: 'sha256:1' } });
      response.end();
    },
  });
  await runtime.ensureImage(PROFILE);
  const told = events.map((event) => (event.type === 'image-pull' ? event.progress : ''));
  expect(told.length).toBeGreaterThan(3);
  expect(told.length).toBeLessThan(8);
  expect(told[1]).toMatch(/^0 of 1 layers, \d\.0 of 8\.0 MB$/);
  daemon.recover();
  const closed = Promise.withResolvers<void>();
  daemon.on(/create/, {
    kind: 'act',
    act: (response) => {
      response.on('close', closed.resolve).writeHead(200).write('{"status":"x"}\n');
    },
  });
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({
    code: 'image_unavailable',
    message: expect.stringContaining('nothing moved for 300 ms'),
  });
  await closed.promise;
});

test('[R-13] a pull that is cut off is no success', async () => {
  daemon.on(/create/, { kind: 'half', next: 'die' });
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({ code: 'image_unavailable' });
});

test('[R-13] a registry that keeps the engine waiting is image_unavailable, an engine that is not there is not', async () => {
  daemon.on(/create/, { kind: 'hang' });
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({ code: 'image_unavailable' });
  await daemon[Symbol.asyncDispose]();
  await expect(runtime.ensureImage(PROFILE)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  daemon = await HangingDaemon.open();
});

test('[R-13] never means never', async () => {
  const profile = { ...PROFILE, pull: 'never' as const };
  await expect(runtime.ensureImage(profile)).rejects.toMatchObject({ code: 'image_unavailable' });
  expect(daemon.count(/POST/)).toBe(0);
});

test('[R-13] progress is read from messages that are cut anywhere', () => {
  const progress = new PullProgress();
  const text = [
    { status: 'Pulling from team/tool', id: 'latest' },
    { status: 'Already exists', id: 'l1' },
    { status: 'Downloading', id: 'l2', progressDetail: { current: 5e6, total: 20e6 } },
  ]
    .map((message) => JSON.stringify(message))
    .join('\r\n');
  for (const byte of Buffer.from(text)) progress.read(Buffer.from([byte]));
  expect(progress.summary()).toBe('1 of 2 layers, 5.0 of 20.0 MB');
  expect(progress.error).toBeNull();
});
