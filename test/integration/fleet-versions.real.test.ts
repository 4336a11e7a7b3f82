import { afterAll, beforeAll, expect, test } from 'vitest';
import { asSandboxId } from '../../src/domain/ids.ts';
import type { EventsBody } from '../../src/http/schemas.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import { acquired, answers, type Fleet, LEASE_MS, useFleets, watch } from '../support/fleet.ts';

const { openFleet } = useFleets();

let fleet: Fleet;
let a: BrokerProcess;
let b: BrokerProcess;
beforeAll(async () => {
  fleet = await openFleet({ settings: { idle: { timeout: '500ms' } } });
  [a, b] = await Promise.all([fleet.join(), fleet.join()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

test('[L-27] a record of a newer version: no replica renews, adopts or removes it, callers are told, others go on (real)', async () => {
  const held = await acquired(a, person('newer'));
  const container = await fleet.containerOf(held.id);
  await a.api.release(held);
  const key = new RedisKeys('sandbox-broker', fleet.deployment).record(asSandboxId(held.id));
  const version = (v: string) => fleet.ask((redis) => redis.hset(key, { v }));
  await version('2');
  const before = await fleet.record(held.id);
  await watch(b, 2 * LEASE_MS);

  expect(await fleet.record(held.id)).toEqual(before);
  expect(await fleet.containersOf(held.id)).toEqual([container]);
  expect(await answers(held.url)).toBe(true);
  for (const { api } of [a, b]) {
    const refused = await api.acquire(person('newer'), { waitMs: 0 });
    expect([refused.status, refused.body.code]).toEqual([503, 'record_unreadable']);
    expect((await api.destroy(held.id)).status).toBe(503);
  }
  const history = async () => (await a.api.call<EventsBody>('GET', `/v1/sandboxes/${held.id}/events`)).body.items;
  const refusals = async () => (await history()).filter(({ event }) => event === 'refused');
  await eventually(async () => (await refusals()).length === 2);
  for (const { reason } of await refusals()) expect(reason).toBe('record_unreadable');
  const got = await a.api.call<{ detail: string }>('GET', `/v1/sandboxes/${held.id}`);
  expect([got.status, got.body.detail]).toEqual([503, expect.stringContaining('unless a newer broker wrote it')]);
  expect((await acquired(b, person('beside'))).origin).toBe('created');

  await version('1');
  const again = await acquired(b, person('newer'));
  expect(again.url).toBe(held.url);
});
