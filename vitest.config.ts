import { defineConfig } from 'vitest/config';

/**
 * `unit` needs nothing but this folder. `real` needs a Docker engine and a Redis: files named `*.real.test.ts`, which
 * `npm test` runs with both at hand (DOCKER_HOST, REDIS_URL).
 */
export default defineConfig({
  test: {
    retry: 0,
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
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
