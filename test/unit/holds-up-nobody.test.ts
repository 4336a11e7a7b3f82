import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, LEASE_MS, World } from '../support/world.ts';

test('[C-04] [C-07] what is removed while a reconcile pass looks at it counts no more', async () => {
  const world = new World({ maxSandboxes: 1 });
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await b.take('u'));
  const list = a.points.hold('list', 'after'); // the engine has answered, the answer is on its way
  const pass = a.reconciler.pass();
  await list.reached;
  expect(await b.destroy.run(world.idOf('u'))).toBe('gone');
  expect(world.engine.containers).toEqual([]);
  list.release();
  await pass;
  expect((await a.store.pool()).sandboxes).toBe(0);
  expect((await b.take('v')).kind).toBe('ready');
});

test('[T-12] [T-15] one container whose name cannot be given back stops no other from being adopted', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  handedOut(await a.take('v'));
  const [first] = world.engine.containers;
  await a.runtime.condemn(world.idOf('u'), first!.id); // a removal that was given up; the record is verified
  world.database.remove(world.idOf('v')); // the store lost this one
  a.tracked.forget(world.idOf('v'), a.tracked.current(world.idOf('v'), world.clock.monotonic())!.record.fence);
  a.points.break('giveBack', () => new BrokerError('runtime_timeout', 'rename: no answer within 10 s'));
  for (let n = 0; n < 10; n += 1) {
    await a.reconciler.pass();
    await a.tasks.drained(60_000);
    await world.pass(LEASE_MS, a);
  }
  expect(world.record('v')?.state).toBe('ready');
});

test('[C-05] spares that end as soon as they answered are not made again and again without a pause', async () => {
  const world = new World();
  const a = world.replica('a', { spares: 1 });
  const stopping = new AbortController();
  let made = 0;
  const original = a.runtime.waitReady.bind(a.runtime);
  a.runtime.waitReady = async (container, profile) => {
    const answer = await original(container, profile);
    made += 1;
    if (made === 50) stopping.abort();
    setImmediate(() => world.engine.find(container) && world.engine.kill(container)); // it answers once, and dies
    await new Promise((resolve) => setImmediate(resolve));
    return answer;
  };
  await a.spares.pass(stopping.signal);
  expect(made).toBeLessThan(10);
});
