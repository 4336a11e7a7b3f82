import { expect, test } from 'vitest';
import { handedOut, LEASE_MS, type Replica, World } from '../support/world.ts';

/** With their records more than are planned in one go. */
const USERS = Array.from({ length: 600 }, (_, n) => `u${n}`);
/** Some of all, in whatever part each of them is. */
const SOME = USERS.filter((_, n) => n % 30 === 0);

async function manySandboxes(): Promise<{ readonly world: World; readonly a: Replica }> {
  const world = new World({ maxSandboxes: 0 });
  const a = world.replica('a');
  for (const user of USERS) handedOut(await a.take(user));
  return { world, a };
}

/** One pass, in which other work was let in: the scene was planned in parts. */
async function passInParts({ clock }: World, { reconciler }: Replica): Promise<void> {
  let done = false;
  let breaths = 0;
  const pass = reconciler.pass().finally(() => {
    done = true;
  });
  while (!done) {
    await clock.settle();
    breaths += clock.waiting;
    await clock.advance(0);
  }
  await pass;
  expect(breaths).toBeGreaterThan(0);
}

test('[T-07] in a large scene too, a container that has lost its name is seen to run, and its record is adopted', async () => {
  const { world, a } = await manySandboxes();
  const b = world.replica('b');
  for (const user of SOME) world.engine.rename(world.engine.get(world.record(user)!.container!), `renamed-${user}`);
  await passInParts(world, a);
  expect(a.points.count('postMortem')).toBe(0);
  await world.pass(LEASE_MS, b);
  await passInParts(world, b);
  expect(USERS.filter((user) => world.record(user)?.owner !== 'b')).toEqual([]);
});

test('[T-11] in a large scene too, strays are removed after a lease, and tried again after a pause if that failed', async () => {
  const { world } = await manySandboxes();
  for (const user of SOME) {
    world.engine.kill(world.record(user)!.container!);
    world.database.remove(world.idOf(user));
  }
  const b = world.replica('b');
  b.points.break('remove', () => new Error('no answer'));
  const passes = async (count: number): Promise<void> => {
    for (let pass = 0; pass < count; pass += 1) {
      await passInParts(world, b);
      await b.tasks.drained(60_000);
    }
  };
  await passes(1);
  await world.pass(LEASE_MS, b);
  await passes(2); // removed in vain, and seen condemned
  expect(b.points.count('remove')).toBe(SOME.length);
  expect(b.teardown.open().count).toBe(SOME.length);
  await world.pass(LEASE_MS, b);
  await passes(3);
  expect(b.points.count('remove')).toBe(2 * SOME.length);
  b.points.repair('remove');
  await world.pass(2 * LEASE_MS, b);
  await passes(1);
  expect(world.engine.containers).toHaveLength(USERS.length - SOME.length);
});
