import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EventsBody } from '../../src/http/schemas.ts';
import { person } from '../support/broker-client.ts';
import { eventually } from '../support/docker.ts';
import { acquired, answers, type Fleet, more, type Proxied, STOP, useFleets } from '../support/fleet.ts';

const { openFleet } = useFleets();
/** What changes something in the engine. */
const CHANGE = /^(POST|PUT|DELETE) \/(containers|networks|volumes)\//;
const FLEET = 'sandbox_broker_fleet_';
const STATES = ['starting', 'active', 'warm', 'destroying'] as const;

let fleet: Fleet;
let a: Proxied;
let b: Proxied;
beforeAll(async () => {
  fleet = await openFleet();
  [a, b] = await Promise.all([fleet.joinThroughProxy(), fleet.joinThroughProxy()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

const counted = async ({ replica }: Proxied, name: string): Promise<(number | undefined)[]> => {
  const metrics = await replica.api.metrics();
  return STATES.map((state) => metrics.get(`sandbox_broker_${name}{state="${state}"}`));
};

test('[H-09] numbers of the fleet are the same at every replica, and what each owns sums up to them (real)', async () => {
  const wishes = [a, a, b, b].map(({ replica }, n) => acquired(replica, person(`counted ${n}`)));
  const all = await Promise.all(wishes);
  await a.replica.api.release(all[3]!); // it stays the other one's
  await eventually(async () => (await counted(b, 'sandboxes_owned')).join() === '0,1,1,0', 20_000);
  await Promise.all([a, b].map(({ replica }) => more(replica, 'reconcile-pass', 2)));
  expect(await counted(a, 'sandboxes_owned')).toEqual([0, 2, 0, 0]);
  for (const one of [a, b]) expect(await counted(one, 'fleet_sandboxes')).toEqual([0, 3, 1, 0]);
  const [ofA, ofB] = await Promise.all(
    [a, b].map(async ({ replica }) => [...(await replica.api.metrics())].filter(([name]) => name.startsWith(FLEET))),
  );
  expect(ofA).toEqual(ofB);
  expect(new Map(ofA).get(`${FLEET}containers`)).toBe(4);
  await Promise.all(all.map(({ id }) => b.replica.api.destroy(id)));
});

for (const which of ['the first', 'the second'] as const) {
  test(`any replica serves any call: the owner is ${which}, and stays it until the sandbox is destroyed (real)`, async () => {
    const [owning, serving] = which === 'the first' ? [a, b] : [b, a];
    const { api } = serving.replica;
    const who = person(`of ${which}`);
    const [held, second] = [await acquired(owning.replica, who), await acquired(owning.replica, who)];
    const { id } = held;
    const { owner, fence } = await fleet.record(id);
    expect(owner).toBe((await owning.replica.api.status()).body.owner);
    const changes = [a, b].map(({ proxy }) => proxy.count(CHANGE));
    const seen = { id, url: held.url, owner };

    expect((await api.get(id)).body).toMatchObject({ ...seen, state: 'active', holds: 2 });
    expect((await api.list({ ...who })).body.items).toEqual([expect.objectContaining({ ...seen, holds: 2 })]);
    await eventually(async () => {
      const { status, body } = await api.call<EventsBody>('GET', `/v1/sandboxes/${id}/events`);
      expect(status).toBe(200);
      return body.items.some((item) => item.event === 'started' && item.owner === owner);
    }, 20_000); // what happened is written after its call was answered
    expect((await api.keepalive(id, held.holdId)).body).toMatchObject({ ...seen, holds: 2 });
    expect((await api.release(second)).body).toMatchObject({ ...seen, state: 'active', holds: 1 });
    expect((await api.release(held)).body).toMatchObject({ ...seen, state: 'warm', holds: 0 });
    await Promise.all([a, b].map(({ replica }) => more(replica, 'reconcile-pass', 2)));
    expect(await fleet.record(id)).toMatchObject({ owner, fence, state: 'ready' });
    expect([a, b].map(({ proxy }) => proxy.count(CHANGE))).toEqual(changes);
    expect(await answers(held.url)).toBe(true);

    const stops = [owning, serving].map(({ proxy }) => proxy.count(STOP));
    expect((await api.destroy(id)).status).toBe(204);
    await eventually(async () => (await fleet.containersOf(id)).length === 0, 20_000);
    expect([owning, serving].map(({ proxy }) => proxy.count(STOP))).toEqual([stops[0], stops[1]! + 1]);
    for (const { replica } of [a, b]) expect((await replica.api.get(id)).status).toBe(404);
  });
}
