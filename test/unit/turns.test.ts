import { expect, test } from 'vitest';
import type { Handout, Slow, Waiting } from '../../src/lifecycle/handout.ts';
import { Turns } from '../../src/lifecycle/turns.ts';
import { ID, otherIdentity } from '../support/lease-harness.ts';

const handout = (name: string): Handout => ({ name }) as unknown as Handout;
const patient = (): AbortSignal => new AbortController().signal;
const UNSETTLED: Slow = { kind: 'unsettled' };
const STARTING: Slow = { kind: 'starting', record: {} as never };

/** An acquire that ends when the test says so. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<Handout>();
  const waiting = Promise.withResolvers<Waiting>();
  const run = (given: Waiting): Promise<Handout> => {
    waiting.resolve(given);
    return promise;
  };
  return { run, waiting: waiting.promise, end: (name: string) => resolve(handout(name)), fail: reject };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('acquires of one id run one after the other, whatever became of the one before; those of others at once', async () => {
  const turns = new Turns();
  const [one, two, other] = [work(), work(), work()];
  const first = turns.enter(ID, patient(), one.run);
  const second = turns.enter(ID, patient(), two.run);
  const third = turns.enter(otherIdentity('t2').id, patient(), other.run);
  await settled();
  expect([first.begun, second.begun, third.begun]).toEqual([true, false, true]);
  expect(turns.size).toBe(2);
  one.fail(new Error('first'));
  await expect(first.result).rejects.toThrow('first');
  await settled();
  expect(second.begun).toBe(true);
  two.end('second');
  expect(await second.result).toEqual(handout('second'));
  other.end('third');
  await third.result;
  await settled();
  expect(turns.size).toBe(0);
});

test('[A-12] whoever has given up is skipped, unless it is the first or nothing has kept it waiting', async () => {
  const turns = new Turns();
  const gone = AbortSignal.abort();
  const [one, two] = [work(), work()];
  const first = turns.enter(ID, gone, one.run);
  const second = turns.enter(ID, gone, two.run);
  await settled();
  expect(first.begun).toBe(true);
  (await one.waiting).slow(STARTING);
  one.end('first');
  expect(await second.result).toBeNull();
  expect(second.begun).toBe(false);
  expect((await one.waiting).gaveUp).toBe(gone);
});

test('what keeps the one before is told to those behind it, also to those that come later', async () => {
  const turns = new Turns();
  const [one, two, three] = [work(), work(), work()];
  const heard: [string, Slow][] = [];
  const listen = (name: string, turn: { slow: Promise<Slow> }): void =>
    void turn.slow.then((why) => heard.push([name, why]));
  listen('first', turns.enter(ID, patient(), one.run));
  listen('second', turns.enter(ID, patient(), two.run));
  await settled();
  expect(heard).toEqual([]);
  (await one.waiting).slow(STARTING);
  await settled();
  listen('third', turns.enter(ID, patient(), three.run));
  await settled();
  expect(heard).toEqual([
    ['first', STARTING],
    ['second', STARTING],
    ['third', STARTING],
  ]);
});

test('those that come later hear the latest reason', async () => {
  const turns = new Turns();
  const [one, two] = [work(), work()];
  turns.enter(ID, patient(), one.run);
  const { slow } = await one.waiting;
  slow(STARTING);
  slow(UNSETTLED);
  expect(await turns.enter(ID, patient(), two.run).slow).toBe(UNSETTLED);
});

test('one that ends does not let later ones pass those that stand before them', async () => {
  const turns = new Turns();
  const [one, two, three] = [work(), work(), work()];
  const first = turns.enter(ID, patient(), one.run);
  const second = turns.enter(ID, patient(), two.run);
  one.end('first');
  await first.result;
  await settled();
  const third = turns.enter(ID, patient(), three.run);
  await settled();
  expect([second.begun, third.begun]).toEqual([true, false]);
  two.end('second');
  await second.result;
  await settled();
  expect(third.begun).toBe(true);
});
