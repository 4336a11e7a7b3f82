import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { type BrokerClient, person } from '../support/broker-client.ts';
import type { BrokerProcess, LogLine } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import { acquired, answers, type Fleet, LEASE_MS, SLACK_MS, timeOf, useFleets, watch } from '../support/fleet.ts';

const { openFleet } = useFleets();
const HOLD_MS = 5_000;
const IDLE_MS = 1_000;

let fleet: Fleet;
let a: BrokerProcess;
let b: BrokerProcess;
beforeAll(async () => {
  const settings = {
    idle: { timeout: `${IDLE_MS}ms` },
    holds: { ttl: `${HOLD_MS}ms` },
    acquire: { startTimeout: `${HOLD_MS}ms` },
    profiles: { default: { readiness: { timeout: `${HOLD_MS}ms` } } },
  };
  fleet = await openFleet({ settings });
  [a, b] = await Promise.all([fleet.join(), fleet.join()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** A holder is heard again: as often as it takes until the record is back. */
const revived = (api: BrokerClient, { id, holdId }: AcquiredBody): Promise<unknown> =>
  eventually(async () => (await api.keepalive(id, holdId)).status === 200, LEASE_MS + 2 * SLACK_MS);

/** Holders that are there: each goes on saying so, to any replica, until a pass of this one `ms` from now. */
async function goOn(replica: BrokerProcess, holders: readonly AcquiredBody[], ms: number): Promise<void> {
  let watched = false;
  const end = watch(replica, ms).then(() => {
    watched = true;
  });
  await eventually(async () => {
    for (const { id, holdId } of holders) {
      expect((await replica.api.keepalive(id, holdId)).body).toMatchObject({ state: 'active' });
    }
    return watched;
  }, ms + 30_000);
  await end;
}

const removals = (id: string, ...replicas: readonly BrokerProcess[]): LogLine[] =>
  replicas.flatMap((replica) => replica.events('claimed')).filter(({ sandbox }) => sandbox === id);

for (const first of ['the owner', 'a peer'] as const) {
  test(`[T-06] the store loses everything, and ${first} wakes first: nothing that is held is removed (real)`, async () => {
    const held = await acquired(a, person(`held, ${first}`));
    const container = await fleet.containerOf(held.id);
    for (const replica of [a, b]) replica.signal('SIGSTOP');
    await fleet.ask((redis) => redis.flushall());
    const [early, late] = first === 'the owner' ? [a, b] : [b, a];
    early.signal('SIGCONT');
    // Back in the store without its holder having said anything, and its reaper had time to look.
    await eventually(async () => (await fleet.record(held.id)).state === 'ready', LEASE_MS + 2 * SLACK_MS);
    await watch(early, 2 * IDLE_MS);
    expect(removals(held.id, early)).toEqual([]);
    await revived(early.api, held);
    late.signal('SIGCONT');
    await revived(late.api, held);
    await goOn(late, [held], LEASE_MS + 1_000);
    expect(removals(held.id, a, b)).toEqual([]);
    expect(await fleet.containersOf(held.id)).toEqual([container]);
    expect(await answers(held.url)).toBe(true);
  });
}

test('[T-06] the store comes back with an older copy: nothing that is held is removed, and what was destroyed stays away (real)', async () => {
  const early = await acquired(a, person('before'));
  const destroyed = await acquired(a, person('destroyed'));
  await a.api.release(early);
  await fleet.ask((redis) => redis.save());
  // The copy knows the first as idle and the second not at all; both are held, by holds that are not in it.
  const held = await acquired(b, person('before'));
  const newer = await acquired(b, person('newer'));
  expect(held.origin).toBe('reclaimed');
  // The one that released it knows by now that it is another's: it will not take the copy's word for its own.
  await a.logged(({ event, sandbox }) => event === 'lease-lost' && sandbox === held.id);
  expect((await a.api.destroy(destroyed.id)).status).toBe(204);
  const containers = await Promise.all([held, newer].map(({ id }) => fleet.containersOf(id)));

  // Who knows better wakes last: until then the copy is all there is, and its holders say nothing yet.
  b.signal('SIGSTOP');
  const adoptions = (): number => a.events('adopted').filter(({ sandbox }) => sandbox === held.id).length;
  const before = adoptions();
  await fleet.redis.stop();
  await fleet.redis.start();
  expect((await fleet.record(held.id)).owner).not.toBe(held.owner);
  await eventually(async () => adoptions() > before, LEASE_MS + 2 * SLACK_MS);
  await watch(a, 2 * IDLE_MS);
  expect(removals(held.id, a)).toEqual([]);
  await Promise.all([held, newer].map((one) => revived(a.api, one)));
  b.signal('SIGCONT');
  await goOn(a, [held, newer], HOLD_MS + IDLE_MS);
  for (const [n, { id, url }] of [held, newer].entries()) {
    expect(removals(id, a, b)).toEqual([]);
    expect(await fleet.containersOf(id)).toEqual(containers[n]);
    expect(await answers(url)).toBe(true);
  }
  await eventually(async () => (await b.api.get(destroyed.id)).status === 404);
  expect(await fleet.containersOf(destroyed.id)).toEqual([]);
});

test('[T-20] the store is away for longer than holds and idle time: every holder gets its whole time to come back (real)', async () => {
  const [there, silent] = await Promise.all(['there', 'silent'].map((who) => acquired(a, person(who))));
  const container = await fleet.containerOf(there!.id);
  fleet.redis.signal('SIGSTOP');
  const goneAt = Date.now();
  await Promise.all(
    [a, b].map((replica) =>
      replica.logged(({ event, time }) => event === 'loop-failed' && Date.parse(time) > goneAt + HOLD_MS + IDLE_MS),
    ),
  );
  const backAt = Date.now();
  fleet.redis.signal('SIGCONT');
  await revived(b.api, there!);
  await reapedInTime(silent!, there!, backAt, a, b);
  expect(await fleet.containersOf(there!.id)).toEqual([container]);
  expect(removals(there!.id, a, b)).toEqual([]);
});

test('[T-20] all brokers are away for longer than holds and idle time: every holder gets its whole time to come back (real)', async () => {
  const [there, silent] = await Promise.all(['there before', 'silent before'].map((who) => acquired(b, person(who))));
  const container = await fleet.containerOf(there!.id);
  for (const replica of [a, b]) replica.signal('SIGKILL');
  const { holds } = await fleet.record(silent!.id);
  const until = Number(/=(\d+)$/.exec(holds!)![1]) + IDLE_MS;
  await eventually(async () => {
    const [seconds] = await fleet.ask((redis) => redis.time());
    return Number(seconds) * 1_000 > until;
  }, 20_000);
  const backAt = Date.now();
  const c = await fleet.join();
  await revived(c.api, there!);
  await reapedInTime(silent!, there!, backAt, c);
  expect(await fleet.containersOf(there!.id)).toEqual([container]);
  expect(removals(there!.id, c)).toEqual([]);
});

/** The silent holder's goes, but not before a hold and the idle time are over; the other holder goes on meanwhile. */
async function reapedInTime(
  silent: AcquiredBody,
  there: AcquiredBody,
  backAt: number,
  ...replicas: readonly BrokerProcess[]
): Promise<void> {
  await eventually(
    async () => {
      for (const { api } of replicas) await api.keepalive(there.id, there.holdId);
      return removals(silent.id, ...replicas).length > 0;
    },
    HOLD_MS + IDLE_MS + LEASE_MS + 2 * SLACK_MS,
  );
  const after = timeOf(removals(silent.id, ...replicas)[0]!) - backAt;
  expect(after).toBeGreaterThanOrEqual(HOLD_MS + IDLE_MS);
  await eventually(async () => (await fleet.containersOf(silent.id)).length === 0);
}
