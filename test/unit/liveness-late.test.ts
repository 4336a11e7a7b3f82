import { expect, test } from 'vitest';
import { handedOut, type Replica, World } from '../support/world.ts';

const broken = new Error('the connection was reset');
const start = (replica: Replica) => {
  const stopping = new AbortController();
  const ended = replica.liveness.follow(stopping.signal).catch((error: unknown) => error);
  return { stop: () => stopping.abort(), ended };
};

test('[R-18] [A-02] a list of a stream that has broken meanwhile makes nothing known', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await b.take('u'));
  const list = a.points.hold('list', 'after');
  const first = start(a);
  await list.reached;
  a.runtime.breakStream(broken);
  await first.ended;
  list.release();
  await world.clock.settle();
  const { id } = world.engine.containers[0]!;
  const known = { current: a.liveness.current, url: a.liveness.urlOf(id) };
  // what ends now is told to nobody
  world.engine.kill(id);
  const answer = await b
    .take('v')
    .then(() => a.take('u'))
    .then(handedOut);
  expect(known).toEqual({ current: false, url: null });
  expect(answer.sandbox.url).not.toBe(null);
  expect(answer.origin).toBe('created');
});

test('[R-18] [A-02] nor what it knew outlives into the next stream', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const url = handedOut(await b.take('u')).sandbox.url;
  const list = a.points.hold('list', 'after');
  const first = start(a);
  await list.reached;
  a.runtime.breakStream(broken);
  await first.ended;
  const opening = a.points.hold('watch');
  const second = start(a);
  await opening.reached;
  list.release(); // late, and of the first stream
  await world.clock.settle();
  world.engine.kill(world.engine.containers[0]!.id); // in the gap
  opening.release();
  await world.clock.settle();
  expect(a.liveness.current).toBe(true);
  expect(a.liveness.urlOf(world.engine.containers[0]!.id)).toBe(null); // its own list closed the gap
  expect(handedOut(await a.take('u')).sandbox.url).not.toBe(url);
  second.stop();
});

test('[R-18] the list of a broken stream that fails late does not break the next one', async () => {
  const world = new World();
  const a = world.replica('a');
  const list = a.points.hold('list', 'before');
  const first = start(a);
  await list.reached;
  a.runtime.breakStream(broken);
  await first.ended;
  a.points.break('list', () => new Error('no answer'));
  const opening = a.points.hold('watch');
  const second = start(a);
  await opening.reached;
  list.release();
  await world.clock.settle();
  a.points.repair('list');
  opening.release();
  await world.clock.settle();
  let ended = false;
  void second.ended.then(() => {
    ended = true;
  });
  await world.clock.settle();
  expect(ended).toBe(false);
  expect(a.liveness.current).toBe(true);
  second.stop();
});

test('[A-02] a look that a removal has overtaken is not believed', async () => {
  const world = new World();
  const a = world.replica('a');
  const { stop } = start(a);
  await world.clock.settle();
  const create = a.points.hold('create');
  const answer = a.take('u');
  await create.reached;
  const look = a.points.hold('look', 'after'); // its start is told, and looked at
  create.release();
  handedOut(await answer);
  await look.reached;
  const { id } = world.engine.containers[0]!;
  world.engine.vanish(id);
  look.release();
  await world.clock.settle();
  expect(a.liveness.urlOf(id)).toBe(null);
  stop();
});

test('[A-02] a look that is of an earlier stream is not believed', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const first = start(a);
  await world.clock.settle();
  const look = a.points.hold('look', 'after');
  handedOut(await b.take('u')); // its start is told to a, which looks at it
  await look.reached;
  a.runtime.breakStream(broken);
  await first.ended;
  const { id } = world.engine.containers[0]!;
  world.engine.kill(id); // in the gap
  const second = start(a);
  await world.clock.settle();
  expect(a.liveness.current).toBe(true);
  look.release(); // ran when it was asked; says so now
  await world.clock.settle();
  expect(a.liveness.urlOf(id)).toBe(null);
  second.stop();
});

test('an engine whose containers all ended at once is not asked about all of them in the same moment', async () => {
  const world = new World({ maxSandboxes: 0 });
  const a = world.replica('a');
  for (let n = 0; n < 300; n += 1) handedOut(await a.take(`u${n}`));
  for (const { id } of world.engine.containers) world.engine.kill(id); // the engine's machine was restarted
  let asking = 0;
  let most = 0;
  const counted =
    <T extends unknown[], R>(method: (...args: T) => Promise<R>) =>
    async (...args: T): Promise<R> => {
      asking += 1;
      most = Math.max(most, asking);
      await new Promise((resolve) => setImmediate(resolve));
      return method(...args).finally(() => {
        asking -= 1;
      });
    };
  a.runtime.look = counted(a.runtime.look.bind(a.runtime));
  a.runtime.postMortem = counted(a.runtime.postMortem.bind(a.runtime));
  a.runtime.mark = counted(a.runtime.mark.bind(a.runtime));
  const stopping = new AbortController();
  void a.liveness.follow(stopping.signal).catch(() => undefined);
  await world.clock.settle();
  await a.tasks.drained(60_000);
  stopping.abort();
  expect(most).toBeLessThanOrEqual(50);
});
