import { expect, test } from 'vitest';
import { handedOut, IDLE_MS, World } from '../support/world.ts';

test('[R-17] beside another engine a destroy is refused, and container and record stay', async () => {
  const world = new World();
  handedOut(await world.replica('a').take('u'));
  world.engine.forgetMarks();
  const b = world.replica('b');
  await expect(b.destroy.run(world.idOf('u'))).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'a' });
  expect(world.engine.containers).toHaveLength(1);
});

test('[R-17] a container that is missing since another engine stands there has not ended', async () => {
  const world = new World();
  const a = world.replica('a');
  const stopping = new AbortController();
  const followed = a.liveness.follow(stopping.signal).catch(() => undefined);
  try {
    await world.clock.settle();
    handedOut(await a.take('u'));
    await world.clock.settle();
    world.engine.forgetMarks();
    world.engine.vanish(world.engine.containers[0]!.id);
    await world.clock.settle();
    await world.pass(1_000, a);
    expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'a' });
    expect(a.events.map(({ type }) => type)).toContain('engine-mismatch');
    expect(a.events.map(({ type }) => type)).not.toContain('ended');
  } finally {
    stopping.abort();
    await followed;
  }
});

test('[R-17] a removal on a replica beside another engine is put off, and the record stays', async () => {
  const world = new World();
  const a = world.replica('a');
  const { hold } = handedOut(await a.take('u'));
  const container = world.record('u')?.container;
  await a.store.release(world.idOf('u'), hold);
  await world.pass(IDLE_MS, a);
  world.engine.forgetMarks();
  await expect(a.reconciler.pass()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  await a.reaper.pass(new AbortController().signal);
  await a.tasks.drained(60_000);
  expect(world.record('u')).toMatchObject({ state: 'destroying', container });
  expect(world.engine.containers.map(({ id, name }) => [id, name])).toEqual([
    [container, `sandbox-${world.idOf('u')}`],
  ]);
  expect(a.events.map(({ type }) => type)).toContain('removal-failed');
});
