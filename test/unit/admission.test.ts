import { expect, test } from 'vitest';
import type { BrokerError } from '../../src/domain/errors.ts';
import type { AcquireOutcome } from '../../src/service/api.ts';
import { HOLD_MS, handedOut, type Replica, World } from '../support/world.ts';

/** As long as an answer to news may take. */
const SOON_MS = 25;
const PATIENT = { waitTimeoutMs: 30_000 };

async function held(replica: Replica, user: string) {
  const { sandbox, hold } = handedOut(await replica.take(user));
  return { release: () => replica.store.release(sandbox.id, hold) };
}

/** How it ended, or `waiting`. */
function following(acquiring: Promise<AcquireOutcome>): { readonly is: string } {
  const state = { is: 'waiting' };
  acquiring.then(
    ({ kind }) => Object.assign(state, { is: kind }),
    (error: BrokerError) => Object.assign(state, { is: error.code }),
  );
  return state;
}

const refusal = (acquiring: Promise<AcquireOutcome>): Promise<BrokerError> =>
  acquiring.then(
    ({ kind }) => {
      throw new Error(`expected a refusal, got ${kind}`);
    },
    (error: BrokerError) => error,
  );
const asked = ({ storePoints }: Replica): number => storePoints.count('take');

test('[C-03] who waits asks seldom while nothing changes, however many wait', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 60_000 });
  const a = world.replica('a');
  await held(a, 'u');
  const waiting = Array.from({ length: 50 }, (_, n) => following(a.take(`w${n}`, 60_000)));
  await world.clock.advance(1_000);
  const before = { take: asked(a), unheld: a.storePoints.count('unheld') };
  await world.clock.advance(40_000);
  expect(asked(a) - before.take).toBeLessThanOrEqual(27);
  expect(a.storePoints.count('unheld') - before.unheld).toBeLessThanOrEqual(27);
  expect(new Set(waiting.map(({ is }) => is))).toEqual(new Set(['waiting']));
});

test('[C-03] a sandbox released anywhere makes room at once for who waits elsewhere', async () => {
  const world = new World({ maxSandboxes: 1, ...PATIENT });
  const [a, b] = [world.replica('a'), world.replica('b')];
  const first = await held(b, 'u');
  const waiting = following(a.take('v'));
  await world.clock.settle();
  await first.release();
  await world.clock.advance(SOON_MS);
  expect(waiting.is).toBe('ready');
});

test('[C-03] a hold that runs out is no news: it is found by asking again after a while', async () => {
  const world = new World({ maxSandboxes: 1, ...PATIENT });
  const a = world.replica('a');
  await held(a, 'u');
  await world.pass(HOLD_MS - 10_000, a);
  const waiting = following(a.take('v'));
  await world.clock.advance(9_900);
  expect(waiting.is).toBe('waiting');
  await world.clock.advance(2_700);
  expect(waiting.is).toBe('ready');
});

test('[C-03] news that comes while the store is being asked is not missed', async () => {
  const world = new World({ maxSandboxes: 1, ...PATIENT });
  const [a, b] = [world.replica('a'), world.replica('b')];
  await held(b, 'u');
  const waiting = following(a.take('v'));
  await world.clock.advance(500);
  const take = a.storePoints.hold('take', 'after');
  await world.clock.advance(2_500);
  await take.reached;
  expect(await b.destroy.run(world.idOf('u'))).toBe('gone');
  take.release();
  await world.clock.advance(2 * SOON_MS);
  expect(waiting.is).toBe('ready');
});

test('[C-03] for one who waits one sandbox goes, however long its removal takes', async () => {
  const world = new World({ maxSandboxes: 2, ...PATIENT });
  const [a, b] = [world.replica('a'), world.replica('b')];
  const [first, second] = [await held(b, 'u'), await held(b, 'v')];
  const waiting = following(a.take('w'));
  await world.clock.settle();
  const remove = a.points.hold('remove');
  await first.release();
  await world.clock.advance(SOON_MS);
  await remove.reached;
  await second.release();
  await world.clock.advance(5_000);
  expect(world.record('v')?.state).toBe('ready');
  remove.release();
  await world.clock.advance(SOON_MS);
  expect(waiting.is).toBe('ready');
});

test('[C-03] the first in line leaves it when it gives up', async () => {
  const world = new World({ maxSandboxes: 1, ...PATIENT });
  const a = world.replica('a');
  await held(a, 'u');
  const hangUp = new AbortController();
  const refused = refusal(a.take('v', 50_000, hangUp.signal));
  await world.clock.settle();
  expect(a.admission.waiting).toBe(1);
  hangUp.abort();
  expect((await refused).code).toBe('capacity_exhausted');
  expect(a.admission.waiting).toBe(0);
});

test('[C-03] a slot of one user is no news for those who wait for another user’s', async () => {
  const world = new World({ maxPerUser: 1, ...PATIENT });
  const a = world.replica('a');
  const gone = new AbortController().signal;
  const take = (userId: string, threadId: string) => a.handouts.acquire({ userId, threadId }, { gone });
  for (const user of ['u', 'v']) handedOut(await take(user, '1'));
  const [u, v] = [following(take('u', '2')), following(take('v', '2'))];
  await world.clock.advance(100);
  const before = asked(a);
  const [mine] = await a.store.page(null, 1).then(({ items }) => items);
  if (mine?.kind !== 'record') throw new Error('no record');
  expect(await a.destroy.run(mine.id)).toBe('gone');
  await world.clock.advance(SOON_MS);
  expect(asked(a) - before).toBe(1);
  expect([u.is, v.is].sort()).toEqual(['ready', 'waiting']);
});

test('[C-03] who meets the other limit at the head of one line goes to the end of the other', async () => {
  const world = new World({ maxSandboxes: 2, maxPerUser: 1, ...PATIENT });
  const a = world.replica('a');
  const gone = new AbortController().signal;
  const take = (userId: string, threadId: string) => a.handouts.acquire({ userId, threadId }, { gone });
  const own = handedOut(await take('u', '1'));
  const ofFleet = following(take('u', '2'));
  const other = await held(a, 'v');
  const next = following(a.take('w'));
  await world.clock.advance(100);
  expect(await a.destroy.run(own.sandbox.id)).toBe('gone');
  await world.clock.advance(SOON_MS);
  expect([ofFleet.is, next.is].sort()).toEqual(['ready', 'waiting']);
  await other.release();
  await world.clock.advance(2 * SOON_MS);
  expect([ofFleet.is, next.is]).toEqual(['ready', 'ready']);
});

test('[C-03] a removal that hangs keeps nobody from a slot that frees meanwhile', async () => {
  const world = new World({ maxSandboxes: 2, ...PATIENT });
  const [a, b] = [world.replica('a'), world.replica('b')];
  const first = await held(b, 'u');
  await held(b, 'v');
  const waiting = [following(a.take('w')), following(a.take('x'))];
  await world.clock.settle();
  const remove = a.points.hold('remove');
  await first.release();
  await world.clock.advance(SOON_MS);
  await remove.reached;
  expect(await b.destroy.run(world.idOf('v'))).toBe('gone');
  await world.clock.advance(SOON_MS);
  expect(waiting.map(({ is }) => is)).toEqual(['ready', 'waiting']);
  remove.release();
  await world.clock.advance(SOON_MS);
  expect(waiting.map(({ is }) => is)).toEqual(['ready', 'ready']);
});

test('[C-03] whoever gives up while room is made for it is told to ask again soon; the room is made all the same', async () => {
  const world = new World({ maxSandboxes: 1, ...PATIENT });
  const a = world.replica('a');
  const first = await held(a, 'u');
  await first.release();
  const remove = a.points.hold('remove');
  const hangUp = new AbortController();
  const refused = refusal(a.take('v', 50_000, hangUp.signal));
  await remove.reached;
  hangUp.abort();
  expect(await refused).toMatchObject({ code: 'capacity_exhausted', retryAfterMs: 1_000 });
  remove.release();
  await world.clock.settle();
  expect(world.record('u')?.state).toBe('gone');
});

test('[C-03] whose time is over before it stands in line is refused at once', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 5_000 });
  const a = world.replica('a');
  const pauses: number[] = [];
  const pause = world.clock.pause.bind(world.clock);
  world.clock.pause = (ms, signal) => {
    pauses.push(ms);
    return pause(ms, signal);
  };
  await held(a, 'u');
  const take = a.storePoints.hold('take', 'after');
  const late = refusal(a.take('v'));
  await take.reached;
  await world.clock.advance(4_000);
  const other = refusal(a.take('w'));
  await world.clock.advance(2_000);
  take.release();
  await world.clock.advance(0);
  expect((await late).code).toBe('capacity_exhausted');
  expect(a.admission.waiting).toBe(1);
  await world.clock.advance(3_000);
  expect((await other).code).toBe('capacity_exhausted');
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0);
});

test('[C-03] a refusal tells when the first hold may run out, within bounds', async () => {
  const world = new World({ maxSandboxes: 1 });
  const a = world.replica('a');
  const early = a.points.hold('create');
  const starting = a.take('u');
  await early.reached;
  expect((await refusal(a.take('v'))).retryAfterMs).toBe(5_000); // nothing is held yet, and nothing can go
  early.release();
  handedOut(await starting);
  expect((await refusal(a.take('v'))).retryAfterMs).toBe(30_000);
  await world.pass(HOLD_MS - 12_000, a);
  expect((await refusal(a.take('v'))).retryAfterMs).toBe(12_000);
  await world.clock.advance(11_700);
  expect((await refusal(a.take('v'))).retryAfterMs).toBe(1_000);
});

test('[C-03] so does one after a wait in line', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 10_000 });
  const a = world.replica('a');
  await held(a, 'u');
  await world.pass(HOLD_MS - 30_000, a);
  const refused = refusal(a.take('v'));
  await world.clock.advance(10_000);
  const { retryAfterMs } = await refused;
  expect(retryAfterMs).toBeGreaterThan(18_000);
  expect(retryAfterMs).toBeLessThan(24_000);
});
