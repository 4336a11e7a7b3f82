import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { BackgroundLoop, stopAll } from '../../src/lifecycle/background-loop.ts';
import { ManualClock } from '../support/manual-clock.ts';

function loopOf(clock: ManualClock, pass: (stopping: AbortSignal) => Promise<void>) {
  const events: BrokerEvent[] = [];
  const emit = (event: BrokerEvent): void => void events.push(event);
  const random = (): number => 0;
  const loop = new BackgroundLoop({ name: 'test', intervalMs: 1_000, first: 'at once', pass, clock, random, emit });
  return { events, loop };
}

test('[T-15] a loop that never began is stopped at once, and does not begin any more', async () => {
  const clock = new ManualClock();
  let passes = 0;
  const { loop } = loopOf(clock, async () => {
    passes += 1;
  });
  expect(await loop.stop(1_000)).toBe(true);
  expect(clock.waiting).toBe(0);
  loop.start();
  await clock.advance(5_000);
  expect(passes).toBe(0);
});

test('[T-15] stopping ends the pause, leaves none behind, and no pass begins', async () => {
  const clock = new ManualClock();
  let passes = 0;
  const { loop, events } = loopOf(clock, async () => {
    passes += 1;
  });
  loop.start();
  await clock.settle();
  expect(await loop.stop(1_000)).toBe(true);
  expect(clock.waiting).toBe(0);
  await clock.advance(5_000);
  expect(passes).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(['loop-pass']);
});

test('[T-15] the pass under way is told, and waited for so long and no longer; nothing follows it', async () => {
  const clock = new ManualClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  let told = false;
  const { loop } = loopOf(clock, (stopping) => {
    stopping.addEventListener('abort', () => {
      told = true;
    });
    return promise;
  });
  loop.start();
  await clock.settle();
  let inTime: boolean | null = null;
  void loop.stop(1_000).then((ended) => {
    inTime = ended;
  });
  expect(told).toBe(true);
  await clock.advance(999);
  expect(inTime).toBeNull();
  await clock.advance(1);
  expect(inTime).toBe(false);
  resolve();
  await clock.settle();
  expect(await loop.stop(1_000)).toBe(true);
  expect(clock.waiting).toBe(0);
});

test('[T-15] all are stopped at the same time', async () => {
  const clock = new ManualClock();
  const never = () => new Promise<void>(() => undefined);
  const loops = [loopOf(clock, never).loop, loopOf(clock, never).loop];
  for (const loop of loops) loop.start();
  let stopped = false;
  void stopAll(loops, 1_000).then(() => {
    stopped = true;
  });
  await clock.advance(999);
  expect(stopped).toBe(false);
  await clock.advance(1);
  expect(stopped).toBe(true);
});

test('[T-15] an error is told with its code, if it has one', async () => {
  const clock = new ManualClock();
  const errors = [new BrokerError('store_unavailable', 'down'), new Error('odd')];
  const { loop, events } = loopOf(clock, async () => {
    throw errors.shift() ?? new Error('odd');
  });
  loop.start();
  await clock.advance(2_000);
  const failed = { type: 'loop-failed', loop: 'test' };
  expect(events).toEqual([
    { ...failed, code: 'store_unavailable', message: 'down', again: false },
    { ...failed, code: null, message: 'odd', again: false },
    { ...failed, code: null, message: 'odd', again: true },
  ]);
  await loop.stop(1_000);
});
