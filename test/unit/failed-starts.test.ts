import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { Fence } from '../../src/domain/ids.ts';
import { FailedStarts } from '../../src/lifecycle/failed-starts.ts';
import { handedOut, LEASE_MS, type Replica, World } from '../support/world.ts';

const down = (): BrokerError => new BrokerError('store_unavailable', 'no connection');

/** A start that failed while the store was away: its container runs, its record is a live start. */
async function failed(world: World, replica: Replica): Promise<void> {
  for (const method of ['activate', 'claim', 'release'] as const) replica.storePoints.break(method, down);
  await expect(replica.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  for (const method of ['activate', 'claim', 'release'] as const) replica.storePoints.repair(method);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
}

test('[A-05] it is not renewed: its record is left to expire', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(world, a);
  const { expiresAt } = world.record('u')!;
  expect(a.tracked.size).toBe(0);
  await world.clock.advance(1_000);
  await a.renewal.pass();
  expect(world.record('u')).toMatchObject({ state: 'starting', expiresAt });
});

test('[A-05] it is claimed, and what it made removed, once the store has answered for half a lease, not before', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(world, a);
  await a.renewal.pass();
  await world.clock.advance(LEASE_MS / 2 - 1);
  await a.renewal.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
  await world.clock.advance(1);
  await a.renewal.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});

test('[A-05] a pass without an answer begins that time anew', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(world, a);
  await a.renewal.pass();
  await world.clock.advance(LEASE_MS / 2 - 1);
  a.storePoints.failNext('renew', down());
  await expect(a.renewal.pass()).rejects.toMatchObject({ code: 'store_unavailable' });
  await world.clock.advance(1);
  await a.renewal.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
  await world.clock.advance(LEASE_MS / 2);
  await a.renewal.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[A-05] it is claimed once; a claim that gets no answer is made again', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(world, a);
  const before = a.storePoints.count('claim');
  await a.renewal.pass();
  await world.clock.advance(LEASE_MS / 2);
  a.storePoints.failNext('claim', down());
  await expect(a.renewal.pass()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(a.storePoints.count('claim')).toBe(before + 1);
  await a.renewal.pass();
  await world.clock.advance(LEASE_MS / 2);
  for (let pass = 0; pass < 3; pass += 1) await a.renewal.pass();
  expect(a.storePoints.count('claim')).toBe(before + 2);
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
});

test('[A-05] what somebody else went on with is left alone', async () => {
  const world = new World();
  const a = world.replica('a');
  await failed(world, a);
  const again = handedOut(await a.take('u'));
  expect(again.origin).toBe('discovered');
  await world.pass(2 * LEASE_MS, a);
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  expect(world.record('u')?.state).toBe('ready');
});

test('[A-05] what is claimed is what was noted, and it is removed as a failed start', async () => {
  const claims: unknown[] = [];
  const begun: unknown[] = [];
  const world = new World();
  const { teardown } = world.replica('a');
  Object.defineProperty(teardown, 'begin', { value: (...args: unknown[]) => begun.push(args) });
  const claim = async (...args: unknown[]) => {
    claims.push(args);
    return claims.length === 1 ? 'refused' : 'it';
  };
  const starts = new FailedStarts({ store: { claim } as never, teardown, clock: world.clock, leaseMs: LEASE_MS });
  for (const [n, user] of ['u', 'v'].entries()) starts.note(world.idOf(user), n as Fence, null);
  await starts.pass();
  await world.clock.advance(LEASE_MS / 2);
  await starts.pass();
  const condition = { kind: 'failed-start', container: null };
  expect(claims).toEqual([
    [world.idOf('u'), 0, condition],
    [world.idOf('v'), 1, condition],
  ]);
  expect(begun).toEqual([['it', 'failed-start', 'kill']]);
});
