import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import { acquired, answers, deeds, type Fleet, useFleets, watch } from '../support/fleet.ts';
import { Sentinel } from '../support/sentinel.ts';

const { openFleet } = useFleets();
const IDLE_MS = 3_000;
const FAILOVER_MS = 30_000;

let fleet: Fleet;
let sentinel: Sentinel;
let a: BrokerProcess;
let b: BrokerProcess;
beforeAll(async () => {
  fleet = await openFleet({ settings: { idle: { timeout: `${IDLE_MS}ms` } } });
  sentinel = await Sentinel.watch(fleet.redis);
  const store = sentinel.settings;
  [a, b] = await Promise.all([fleet.join({ store }), fleet.join({ store })]);
});
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await sentinel?.[Symbol.asyncDispose]();
});

const removals = (): string[] => deeds(a, b).filter((deed) => !deed.startsWith('adopted'));

test('[T-06] a failover by Sentinel loses acknowledged writes: what is held goes on, and is owned again (real)', async () => {
  const known = await acquired(a, person('known'));
  const idle = await acquired(a, person('held again'));
  await a.api.release(idle);
  await sentinel.detach();
  // The one that is promoted does not know this sandbox, and takes the other one for idle.
  const unknown = await acquired(b, person('unknown'));
  const again = await acquired(b, person('held again'));
  expect(again.id).toBe(idle.id);
  const held = [known, unknown, again];
  const containers = await Promise.all(held.map(({ id }) => fleet.containersOf(id)));
  const before = removals();

  await sentinel.lose();
  await eventually(async () => {
    expect(await Promise.all(held.map(({ url }) => answers(url)))).toEqual([true, true, true]);
    return sentinel.promoted();
  }, FAILOVER_MS);
  for (const { id } of held) {
    await eventually(async () => (await fleet.record(id, sentinel.replica)).state === 'ready', FAILOVER_MS);
  }
  // Before any holder says something, the reapers have had the time to look.
  await Promise.all([a, b].map((replica) => watch(replica, IDLE_MS + 1_000)));
  for (const { id, holdId } of held) {
    for (const { api } of [a, b]) {
      await eventually(async () => (await api.keepalive(id, holdId)).status === 200, FAILOVER_MS);
    }
  }

  const owners = await Promise.all([a, b].map(async ({ api }) => (await api.status()).body.owner));
  for (const [n, { id, url }] of held.entries()) {
    expect(owners).toContain((await fleet.record(id, sentinel.replica)).owner);
    expect(await fleet.containersOf(id)).toEqual(containers[n]);
    expect(await answers(url)).toBe(true);
  }
  expect(removals()).toEqual(before);
  expect(await answers((await acquired(b, person('new'))).url)).toBe(true);
});
