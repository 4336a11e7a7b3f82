import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { AcquireOutcome } from '../../src/service/api.ts';
import { handedOut, type Replica, World } from '../support/world.ts';

async function releaseAfter(world: World, replica: Replica, user: string): Promise<void> {
  const { sandbox, hold } = handedOut(await replica.take(user));
  await replica.store.release(sandbox.id, hold);
  await world.clock.advance(1_000);
}

/** As long as an answer to news may take. */
const SOON_MS = 25;

const users = (world: World, ...names: string[]): string[] =>
  names.filter((name) => world.record(name)?.state === 'ready');
const outcome = (acquiring: Promise<AcquireOutcome>): Promise<string> =>
  acquiring.then(
    ({ kind }) => kind,
    (error: BrokerError) => error.code,
  );

test('[C-02] at the limit the sandbox that has been unheld longest goes, whoever owns it', async () => {
  const world = new World({ maxSandboxes: 3 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  // Not in the order in which the store tells them.
  const [oldest = '', middle = '', newest = ''] = ['p', 'q', 'r'].sort((x, y) =>
    world.idOf(x) < world.idOf(y) ? 1 : -1,
  );
  await releaseAfter(world, b, oldest);
  await releaseAfter(world, a, middle);
  await releaseAfter(world, b, newest);
  expect(handedOut(await a.take('next')).origin).toBe('created');
  expect(users(world, oldest, middle, newest, 'next')).toEqual([middle, newest, 'next']);
  expect(world.engine.containers).toHaveLength(3);
});

test('[C-02] a held one never goes, also when its hold came in while it was picked', async () => {
  const world = new World({ maxSandboxes: 1 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  await releaseAfter(world, a, 'u');
  const claim = b.storePoints.hold('claim');
  const asking = outcome(b.take('v'));
  await claim.reached;
  handedOut(await a.take('u'));
  claim.release();
  expect(await asking).toBe('capacity_exhausted');
  expect(users(world, 'u', 'v')).toEqual(['u']);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});

test('[C-02] at a user’s limit only that user’s make room', async () => {
  const world = new World({ maxPerUser: 1, maxSandboxes: 10 });
  const a = world.replica('a');
  await releaseAfter(world, a, 'other');
  const first = handedOut(
    await a.handouts.acquire({ userId: 'u', threadId: '1' }, { gone: new AbortController().signal }),
  );
  const again = () => a.handouts.acquire({ userId: 'u', threadId: '2' }, { gone: new AbortController().signal });
  expect(await outcome(again())).toBe('user_capacity_exhausted');
  await a.store.release(first.sandbox.id, first.hold);
  expect(handedOut(await again()).origin).toBe('created');
  expect(users(world, 'other')).toEqual(['other']);
});

test('[A-08] an eviction under way does not delay an acquire of the sandbox that goes', async () => {
  const world = new World({ maxSandboxes: 2 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  await releaseAfter(world, a, 'u');
  handedOut(await a.take('v'));
  const remove = b.points.hold('remove');
  const evicting = outcome(b.take('w'));
  await remove.reached;
  const doomed = world.engine.containers.find(({ name }) => name.includes('condemned'));
  const taken = handedOut(await a.take('u'));
  expect(taken.sandbox.url).not.toBe(`http://127.0.0.1:${doomed?.port}`);
  remove.release();
  await world.clock.advance(1_000);
  expect(await evicting).toBe('capacity_exhausted');
  expect(users(world, 'u', 'v', 'w')).toEqual(['u', 'v']);
});

test('[C-03] first come first served: slots go to those who wait in their order, also against later callers', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 30_000 });
  const a = world.replica('a');
  const held = handedOut(await a.take('u'));
  const served: string[] = [];
  for (const user of ['first', 'second', 'third']) {
    void a.take(user).then(async (answer) => {
      const { sandbox, hold } = handedOut(answer);
      served.push(user);
      await a.store.release(sandbox.id, hold);
    });
    await world.clock.settle();
  }
  expect(a.admission.waiting).toBe(3);
  await a.store.release(held.sandbox.id, held.hold);
  void a.take('late').then(() => served.push('late'));
  await world.clock.advance(10_000);
  expect(served).toEqual(['first', 'second', 'third', 'late']);
  expect(a.admission.waiting).toBe(0);
});

test('[C-03] a slot that frees at another replica is found', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 30_000 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await b.take('u'));
  const waiting = a.take('v');
  await world.clock.settle();
  expect(await b.destroy.run(world.idOf('u'))).toBe('gone');
  await world.clock.advance(SOON_MS);
  expect(handedOut(await waiting).origin).toBe('created');
});

test('[C-03] the wait is bounded, then it is 429; who gave up leaves the line', async () => {
  const world = new World({ maxSandboxes: 1, waitTimeoutMs: 5_000 });
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const hangUp = new AbortController();
  const [first, gone, last] = [outcome(a.take('v')), outcome(a.take('w', 50_000, hangUp.signal)), outcome(a.take('x'))];
  await world.clock.settle();
  hangUp.abort();
  expect(await gone).toBe('capacity_exhausted');
  expect(a.admission.waiting).toBe(2);
  await world.clock.advance(4_999);
  expect(a.admission.waiting).toBe(2);
  await world.clock.advance(1);
  expect(await Promise.all([first, last])).toEqual(['capacity_exhausted', 'capacity_exhausted']);
  expect(a.admission.waiting).toBe(0);
  expect(world.clock.waiting).toBe(0);
});

test('[C-03] one user’s line holds no other user up, and who has a sandbox already does not wait', async () => {
  const world = new World({ maxPerUser: 1, waitTimeoutMs: 30_000 });
  const a = world.replica('a');
  const caller = { gone: new AbortController().signal };
  handedOut(await a.handouts.acquire({ userId: 'u', threadId: 'thread' }, caller));
  const waiting = outcome(a.handouts.acquire({ userId: 'u', threadId: '2' }, caller));
  await world.clock.settle();
  expect(handedOut(await a.take('v')).origin).toBe('created');
  expect(handedOut(await a.take('u')).origin).toBe('reused');
  await world.clock.advance(30_000);
  expect(await waiting).toBe('user_capacity_exhausted');
});

test('[C-04] after any mix of failures as many slots are used as there are sandboxes', async () => {
  const world = new World({ maxSandboxes: 4 });
  const a = world.replica('a');
  const broken = (): BrokerError => new BrokerError('runtime_unavailable', 'broken');
  for (const [n, method] of (
    ['ensureImage', 'create', 'start', 'waitReady', 'create', 'waitReady'] as const
  ).entries()) {
    a.points.failNext(method, broken(), n > 3 ? 'after' : 'before');
    await outcome(a.take(`u${n}`));
    await a.tasks.drained(60_000);
  }
  await outcome(a.take('abandoned', 0));
  await a.tasks.drained(60_000);
  const sandboxes = world.engine.containers.length;
  expect(world.database.usage('nobody').fleet).toBe(sandboxes);
});
