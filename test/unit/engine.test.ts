import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { handedOut, World } from '../support/world.ts';

test('[R-17] the mark that engine and store agree on is asked for once', async () => {
  const world = new World();
  const a = world.replica('a');
  const mark = await a.engine.mark();
  expect(await a.engine.mark()).toBe(mark);
  expect(await a.engine.markOrUnknown()).toEqual({ kind: 'known', mark });
  expect(a.points.count('mark')).toBe(1);
  expect(await a.engine.settle()).toBe(mark);
  expect(a.points.count('mark')).toBe(2);
});

test('[R-17] silence is no answer, and no other engine', async () => {
  const world = new World();
  const a = world.replica('a');
  const cause = new BrokerError('runtime_timeout', 'no answer');
  a.points.failNext('mark', cause);
  expect(await a.engine.markOrUnknown()).toEqual({ kind: 'unknown', cause });
  a.points.failNext('mark', cause);
  await expect(a.engine.mark()).rejects.toBe(cause);
  expect(a.events).toEqual([]);
  await a.engine.mark();
});

test('[R-17] another engine than the deployment’s is refused until it is the right one again', async () => {
  const world = new World();
  const a = world.replica('a');
  const expected = await a.engine.mark();
  world.engine.forgetMarks();
  const refused = { code: 'runtime_unavailable' };
  await expect(a.engine.settle()).rejects.toMatchObject(refused);
  const seen = await a.runtime.mark();
  expect(a.events).toEqual([{ type: 'engine-mismatch', expected, seen }]);
  await expect(a.engine.mark()).rejects.toMatchObject(refused);
  await expect(a.engine.markOrUnknown()).rejects.toMatchObject(refused);
  world.database.engine = seen;
  expect(await a.engine.markOrUnknown()).toEqual({ kind: 'known', mark: seen });
  a.points.failNext('mark', new BrokerError('runtime_timeout', 'no answer'));
  expect(await a.engine.markOrUnknown()).toEqual({ kind: 'known', mark: seen });
});

test('[R-17] a broker that keeps its leases to itself concludes nothing where others share theirs', async () => {
  const world = new World();
  const alone = world.replica('alone', { peers: false });
  await alone.engine.mark();
  const { sandbox } = handedOut(await world.replica('a').take('u'));
  world.database.remove(sandbox.id); // a store of its own has no record of it
  await expect(alone.reconciler.pass()).rejects.toMatchObject({
    code: 'runtime_unavailable',
    message: expect.stringContaining('remove the volume shared-world'),
  });
  await expect(alone.engine.mark()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  await expect(alone.engine.markOrUnknown()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  await expect(alone.take('u')).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(alone.events.filter(({ type }) => type === 'adopted')).toEqual([]);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});
