import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, type Replica, World } from '../support/world.ts';

/** Both unheld, the first one for longer. */
async function unheld(world: World, replica: Replica, ...users: readonly string[]): Promise<void> {
  for (const user of users) {
    const { sandbox, hold } = handedOut(await replica.take(user));
    await replica.store.release(sandbox.id, hold);
    await world.clock.advance(1_000);
  }
}

test('[C-02] where the one that was unheld longest is held again meanwhile, the next one goes', async () => {
  const world = new World({ maxSandboxes: 2 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  await unheld(world, a, 'u', 'v');
  const claim = b.storePoints.hold('claim');
  const answer = b.take('w', 0);
  await claim.reached;
  handedOut(await a.take('u'));
  claim.release();
  await answer;
  await world.clock.settle();
  expect(b.storePoints.count('claim')).toBe(2);
  expect(['u', 'v', 'w'].map((user) => world.record(user)?.state)).toEqual(['ready', 'gone', 'ready']);
});

test('[C-02] where the removal of one fails, the next one goes', async () => {
  const world = new World({ maxSandboxes: 2 });
  const a = world.replica('a');
  await unheld(world, a, 'u', 'v');
  a.points.failNext('remove', new BrokerError('runtime_timeout', 'no answer'));
  handedOut(await a.take('w'));
  expect(['u', 'v', 'w'].map((user) => world.record(user)?.state)).toEqual(['destroying', 'gone', 'ready']);
});

test('[C-02] those who come at the same time each make room of their own', async () => {
  const world = new World({ maxSandboxes: 3 });
  const a = world.replica('a');
  await unheld(world, a, 'u', 'v', 'w');
  const all = await Promise.all(['x', 'y', 'z'].map((user) => a.take(user)));
  expect(all.map((answer) => handedOut(answer).origin)).toEqual(['created', 'created', 'created']);
  expect(['u', 'v', 'w'].map((user) => world.record(user)?.state)).toEqual(['gone', 'gone', 'gone']);
  expect(a.points.count('remove')).toBe(3);
});

test('[C-02] an engine that removes nothing is not asked to remove everything', async () => {
  const world = new World({ maxSandboxes: 5 });
  const a = world.replica('a');
  await unheld(world, a, 'u', 'v', 'w', 'x', 'y');
  a.points.break('remove', () => new BrokerError('runtime_timeout', 'no answer'));
  await expect(a.take('z')).rejects.toMatchObject({ code: 'capacity_exhausted' });
  expect(a.points.count('remove')).toBe(3);
});

test('[C-02] one whose record a newer version wrote is passed over', async () => {
  const world = new World({ maxSandboxes: 2 });
  const a = world.replica('a');
  await unheld(world, a, 'u', 'v');
  a.storePoints.failNext('claim', new BrokerError('record_unreadable', 'newer'));
  handedOut(await a.take('w'));
  expect(['u', 'v', 'w'].map((user) => world.record(user)?.state)).toEqual(['ready', 'gone', 'ready']);
});

test('[C-02] making room asks the store as often for one sandbox as for a thousand', async () => {
  const calls: number[] = [];
  for (const count of [1, 1_000]) {
    const world = new World({ maxSandboxes: count });
    const a = world.replica('a');
    await unheld(world, a, 'first');
    const record = world.record('first');
    if (record === null) throw new Error('no record');
    for (let n = 1; n < count; n += 1) {
      world.database.put({ ...record, id: world.idOf(`u${n}`), idleSince: record.idleSince + n, userId: `u${n}` });
    }
    a.store.page = () => Promise.reject(new Error('nothing is paged through'));
    handedOut(await a.take('next'));
    expect(world.record('first')?.state).toBe('gone');
    const { storePoints } = a;
    calls.push(storePoints.count('unheld') + storePoints.count('claim') + storePoints.count('take'));
  }
  expect(calls[1]).toBe(calls[0]);
});
