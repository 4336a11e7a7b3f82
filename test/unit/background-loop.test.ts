import { expect, test } from 'vitest';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { BackgroundLoop, stopAll } from '../../src/lifecycle/background-loop.ts';
import { ManualClock } from '../support/manual-clock.ts';

function loopOf(pass: (stopping: AbortSignal) => Promise<void>, first: 'at once' | 'jittered' = 'at once') {
  const clock = new ManualClock();
  const events: BrokerEvent[] = [];
  const emit = (event: BrokerEvent): void => void events.push(event);
  const random = (): number => 0.5;
  const loop = new BackgroundLoop({ name: 'test', intervalMs: 1_000, retryMs: 100, first, pass, clock, random, emit });
  return { clock, events, loop };
}

test('[T-15] a pass never overlaps another, however long it takes', async () => {
  let running = 0;
  let most = 0;
  let passes = 0;
  const { clock, loop } = loopOf(async () => {
    running += 1;
    most = Math.max(most, running);
    await clock.pause(5_000);
    running -= 1;
    passes += 1;
  });
  loop.start();
  loop.start();
  await clock.advance(20_000);
  expect(most).toBe(1);
  expect(passes).toBe(3);
  const stopped = loop.stop(10_000);
  await clock.advance(10_000);
  expect(await stopped).toBe(true);
});

test('[T-15] an error ends nothing: it is reported, told apart from a repetition, and tried again sooner', async () => {
  let passes = 0;
  const { clock, events, loop } = loopOf(async () => {
    passes += 1;
    if (passes <= 3) throw new Error('broken');
  });
  loop.start();
  await clock.advance(250);
  expect(passes).toBe(3);
  expect(events).toMatchObject([{ type: 'loop-failed', again: false }, { again: true }, { again: true }]);
  await clock.advance(100);
  expect(events.at(-1)).toEqual({ type: 'loop-recovered', loop: 'test' });
  await clock.advance(949);
  expect(passes).toBe(4);
  await clock.advance(1);
  expect(passes).toBe(5);
  await loop.stop(1_000);
});

test('[T-15] the first pass comes after a random part of the interval', async () => {
  let passes = 0;
  const { clock, loop } = loopOf(async () => {
    passes += 1;
  }, 'jittered');
  loop.start();
  await clock.advance(499);
  expect(passes).toBe(0);
  await clock.advance(1);
  expect(passes).toBe(1);
  await loop.stop(1_000);
});

test('[T-15] stopping waits for the pass under way, for its deadline at most, and starts no other', async () => {
  let passes = 0;
  const { clock, loop } = loopOf(async () => {
    passes += 1;
    await clock.pause(60_000);
  });
  loop.start();
  await clock.advance(10);
  const stopping = stopAll([loop], 5_000);
  const inTime = loop.stop(5_000);
  await clock.advance(5_000);
  await stopping;
  expect(await inTime).toBe(false);
  await clock.advance(120_000);
  expect(passes).toBe(1);
  expect(clock.waiting).toBe(0);
});

test('[T-15] a wake while a pass is under way is not lost: the next pause is left out, that one alone', async () => {
  let passes = 0;
  const { clock, loop } = loopOf(async () => {
    passes += 1;
    if (passes === 1) await clock.pause(100);
  });
  loop.start();
  await clock.advance(50);
  loop.wake();
  await clock.advance(60);
  expect(passes).toBe(2);
  await clock.advance(500);
  expect(passes).toBe(2);
  const stopped = loop.stop(1_000);
  await clock.advance(1_000);
  expect(await stopped).toBe(true);
});
