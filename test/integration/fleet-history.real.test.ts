import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asSandboxId } from '../../src/domain/ids.ts';
import type { EventsBody, LogsBody } from '../../src/http/schemas.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import { acquired, type Fleet, useFleets } from '../support/fleet.ts';

const { openFleet } = useFleets();
const docker = dockerClient();

let fleet: Fleet;
let a: BrokerProcess;
let b: BrokerProcess;
beforeAll(async () => {
  fleet = await openFleet({ settings: { idle: { timeout: '1s' } } });
  [a, b] = await Promise.all([fleet.join(), fleet.join()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

const events = async ({ api }: BrokerProcess, id: string): Promise<EventsBody['items']> =>
  (await api.call<EventsBody>('GET', `/v1/sandboxes/${id}/events`)).body.items ?? [];
const logs = async ({ api }: BrokerProcess, id: string) => api.call<LogsBody>('GET', `/v1/sandboxes/${id}/logs`);
const namesOf = (items: EventsBody['items']): string[] => items.map(({ event }) => event);

test('what one replica did any replica tells: held, released, reaped, and by whom (real)', async () => {
  const held = await acquired(a, person('told'));
  await b.api.release(held);
  await eventually(async () => namesOf(await events(b, held.id)).includes('removed'), 30_000);
  const told = await events(b, held.id);
  expect(await events(a, held.id)).toEqual(told);
  const names = namesOf(told);
  expect(names.slice(0, 2)).toEqual(['started', 'held']);
  expect(names.slice(2).sort()).toEqual(['claimed', 'released', 'removed']);
  expect(told.find(({ event }) => event === 'claimed')).toMatchObject({ reason: 'idle' });
  expect(told.find(({ event }) => event === 'started')?.owner).toBe((await a.api.status()).body.owner);
});

test('[R-18] why did it die? the other replica tells, with its last log lines; npm run why reads it out (real)', async () => {
  const held = await acquired(a, person('dies'));
  expect((await logs(b, held.id)).body).toMatchObject({ running: true, reason: null });
  await docker.getContainer(await fleet.containerOf(held.id)).kill();
  await eventually(async () => namesOf(await events(b, held.id)).includes('ended'), 30_000);
  expect((await events(b, held.id)).at(-1)).toMatchObject({ event: 'ended', reason: 'killed (exit code 137)' });
  const { status, body } = await logs(b, held.id);
  expect(status).toBe(200);
  expect(body).toMatchObject({ running: false, reason: 'killed', exitCode: 137, logTail: expect.any(String) });

  const why = promisify(execFile)('node', ['scripts/why.ts', held.id, '--url', b.api.url]);
  const { stdout } = await why;
  expect(stdout).toMatch(/ended +killed \(exit code 137\)/);
  expect(stdout).toContain('it ended: killed');
  const nobody = promisify(execFile)('node', ['scripts/why.ts', '0'.repeat(32), '--url', b.api.url]);
  await expect(nobody).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing is known') });
});

test('a release that was refused is no release: of a sandbox that never was nothing is known (real)', async () => {
  const nobody = '0'.repeat(31).concat('1');
  const body = { holdId: '1' };
  expect((await a.api.call('POST', `/v1/sandboxes/${nobody}/release`, body)).status).toBe(404);
  const later = await acquired(a, person('later'));
  await eventually(async () => namesOf(await events(b, later.id)).includes('held'));
  expect((await b.api.call('GET', `/v1/sandboxes/${nobody}/events`)).status).toBe(404);
});

test('[T-07] a killed owner: the peer tells that it adopted, and what the dead one had told stays (real)', async () => {
  const c = await fleet.join();
  const held = await acquired(c, person('orphaned'));
  await eventually(async () => namesOf(await events(a, held.id)).includes('held'));
  c.signal('SIGKILL');
  await eventually(async () => namesOf(await events(a, held.id)).includes('adopted'), 30_000);
  const told = await events(b, held.id);
  expect(namesOf(told)).toEqual(['started', 'held', 'adopted']);
  expect(new Set(told.map(({ owner }) => owner)).size).toBe(2);
});

test('[R-15] a history holds no user’s text, and is kept for a day (real)', async () => {
  const held = await acquired(a, { userId: 'user secret-7', threadId: 'thread secret-8' });
  const { life, use } = new RedisKeys('sandbox-broker', fleet.deployment).history(asSandboxId(held.id));
  const lines = await eventually(async () => {
    const all = await fleet.ask(async (redis) => [
      ...(await redis.lrange(life, 0, -1)),
      ...(await redis.lrange(use, 0, -1)),
    ]);
    return all.length >= 2 && all;
  });
  expect(lines.join('')).not.toContain('secret');
  expect(await fleet.ask((redis) => redis.pttl(life))).toBeGreaterThan(23 * 3_600_000);
});
