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
