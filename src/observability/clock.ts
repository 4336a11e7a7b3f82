import type { Clock } from '../domain/timing.ts';

/** The longest wait a timer of the platform can do. */
const LONGEST_MS = 2 ** 31 - 1;

/** The machine's time. */
export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  pause: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, LONGEST_MS));
      signal?.addEventListener('abort', done, { once: true });
    }),
};
