import { expect, test } from 'vitest';
import { Scheduler, SteppedClock } from '../support/scheduler.ts';

test('after a step everything that follows from it has happened, however long the chain of promises', async () => {
  const scheduler = new Scheduler();
  let turns = 0;
  await scheduler.begin('one', 0, async () => {
    await scheduler.step('first', () => undefined);
    for (; turns < 10_000; turns += 1) await null;
    await new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)));
    await scheduler.step('second', () => undefined);
  });
  const [thread] = scheduler.threads;
  expect(thread?.stop?.label).toBe('first');
  await scheduler.release(thread!);
  expect(turns).toBe(10_000);
  expect(thread?.stop?.label).toBe('second');
  await scheduler.release(thread!);
  expect(thread?.stop).toBe(null);
});

test('nothing of a thread happens before its step is released, and its effect comes only then', async () => {
  const scheduler = new Scheduler();
  const seen: string[] = [];
  const work = (name: string) => async (): Promise<void> => {
    await scheduler.step('write', () => void seen.push(`${name} writes`));
    seen.push(`${name} goes on`);
  };
  await scheduler.begin('one', 0, work('one'));
  await scheduler.begin('two', 1, work('two'));
  expect(seen).toEqual([]);
  await scheduler.release(scheduler.threads[1]!);
  expect(seen).toEqual(['two writes', 'two goes on']);
  await scheduler.release(scheduler.threads[0]!);
  expect(seen).toEqual(['two writes', 'two goes on', 'one writes', 'one goes on']);
});

test('a call that goes on in the background is a thread of its own', async () => {
  const scheduler = new Scheduler();
  await scheduler.begin('one', 0, async () => {
    await scheduler.step('claim', () => undefined);
    void scheduler.step('in the background', () => undefined);
    await scheduler.step('in the foreground', () => undefined);
  });
  await scheduler.release(scheduler.threads[0]!);
  expect(scheduler.threads.map(({ actor, stop }) => `${actor} ${stop?.label}`)).toEqual([
    'one in the foreground',
    'one in the background',
  ]);
  scheduler.crash(0);
  expect(scheduler.threads.some((thread) => scheduler.canGoOn(thread))).toBe(false);
});

test('a pause ends when something has changed or time has passed, and not before', async () => {
  const scheduler = new Scheduler();
  const clock = new SteppedClock(scheduler);
  await scheduler.begin('one', 0, () => clock.pause(50));
  const [thread] = scheduler.threads;
  expect(scheduler.canGoOn(thread!)).toBe(false);
  scheduler.changes += 1;
  expect(scheduler.canGoOn(thread!)).toBe(true);
  scheduler.changes -= 1;
  scheduler.wake();
  expect(scheduler.canGoOn(thread!)).toBe(true);
});
