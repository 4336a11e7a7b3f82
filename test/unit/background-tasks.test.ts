import { expect, test } from 'vitest';
import { BackgroundTasks } from '../../src/lifecycle/background-tasks.ts';
import { ManualClock } from '../support/manual-clock.ts';

function tasksOf() {
  const clock = new ManualClock();
  return { clock, tasks: new BackgroundTasks(clock) };
}

test('[S-01] drained at once without tasks, and no pause is left behind', async () => {
  const { clock, tasks } = tasksOf();
  expect(await tasks.drained(1_000)).toBe(true);
  expect(clock.waiting).toBe(0);
});

test('[S-01] drained when the last task has settled, those added meanwhile and those that failed included', async () => {
  const { clock, tasks } = tasksOf();
  const [one, two] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const first = tasks.add(one.promise);
  expect(tasks.size).toBe(1);
  let drained: boolean | null = null;
  void tasks.drained(1_000).then((inTime) => {
    drained = inTime;
  });
  const second = tasks.add(two.promise);
  one.resolve('done');
  expect(await first).toBe('done');
  await clock.settle();
  expect(drained).toBeNull();
  two.reject(new Error('its own to report'));
  await expect(second).rejects.toThrow('its own to report');
  await clock.settle();
  expect(drained).toBe(true);
  expect(tasks.size).toBe(0);
  expect(clock.waiting).toBe(0);
});

test('[S-01] a task that never ends is waited for so long and no longer', async () => {
  const { clock, tasks } = tasksOf();
  void tasks.add(new Promise(() => undefined));
  let drained: boolean | null = null;
  void tasks.drained(1_000).then((inTime) => {
    drained = inTime;
  });
  await clock.advance(999);
  expect(drained).toBeNull();
  await clock.advance(1);
  expect(drained).toBe(false);
  expect(tasks.size).toBe(1);
});
