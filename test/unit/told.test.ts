import { expect, test } from 'vitest';
import { Sandboxes } from '../../src/service/sandboxes.ts';
import { HOLD_MS, handedOut, IDLE_MS, World } from '../support/world.ts';

const WRONG_MS = HOLD_MS + 60_000;
const never = new AbortController().signal;

test.for([WRONG_MS, -WRONG_MS])(
  'a replica whose wall clock is off by %d ms tells of holds as the store does',
  async (off) => {
    const world = new World();
    const a = world.replica('a');
    const { sandbox, hold } = handedOut(await a.take('u'));
    const clock = {
      wall: () => world.clock.wall() + off,
      monotonic: () => world.clock.monotonic(),
      pause: world.clock.pause.bind(world.clock),
    };
    const service = new Sandboxes({ store: a.store, clock, emit: () => undefined, idleMs: 600_000 } as never);
    const told = await service.get(sandbox.id);
    expect(await service.keepalive(sandbox.id, hold)).toMatchObject({ state: 'active', holds: 1, warmUntil: null });
    expect(told).toMatchObject({ state: 'active', holds: 1 });
    const other = handedOut(await a.take('u'));
    expect(await service.release(sandbox.id, other.hold)).toMatchObject({ state: 'active', holds: 1, warmUntil: null });
    await world.pass(HOLD_MS + 1_000, a);
    expect(await service.release(sandbox.id, hold)).toMatchObject({ state: 'warm', holds: 0 });
  },
);

test('[R-18] why an earlier container ended is told also where a spare takes its place', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  handedOut(await a.take('u'));
  await a.spares.pass(never);
  const first = world.engine.containers.find(({ name }) => !name.includes('spare'))!;
  world.engine.kill(first.id, { reason: 'out of memory' });
  const { origin, previous } = handedOut(await a.take('u'));
  expect(origin).toBe('spare');
  expect(previous).toMatchObject({ reason: 'out of memory' });
});

test('[R-18] a sandbox that was destroyed is not said to have ended by itself because an earlier container did', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id, { reason: 'out of memory' });
  expect(handedOut(await a.take('u')).previous).toMatchObject({ reason: 'out of memory' });
  await world.pass(IDLE_MS, a);
  expect(await a.destroy.run(world.idOf('u'))).toBe('gone');
  const service = new Sandboxes({
    store: a.store,
    clock: world.clock,
    emit: () => undefined,
    idleMs: IDLE_MS,
  } as never);
  const told = await service.get(world.idOf('u')).catch((error: unknown) => error);
  const again = handedOut(await a.take('u'));
  expect(told).toMatchObject({ code: 'sandbox_not_found', previous: null });
  expect(again.previous).toBe(null);
});
