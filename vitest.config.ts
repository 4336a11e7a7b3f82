import { defineConfig } from 'vitest/config';

/**
 * `unit` needs nothing but this folder. `real` needs a Docker engine and a Redis: files named `*.real.test.ts`, which
 * `npm test` runs with both at hand (DOCKER_HOST, REDIS_URL).
 */
export default defineConfig({
  test: {
    retry: 0,
    // Files of `real` wait more than they work; more of them at once would measure the machine.
    maxWorkers: 2,
    reporters: ['default', './test/support/reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.real.test.ts', 'node_modules/**'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'real',
          include: ['test/**/*.real.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
