import { defineConfig } from 'vitest/config';

/** The suites that need no service and hold the rules of a room (see stryker.config.mjs). */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  leases: [
    'test/contract/leases-{memory,edges}.test.ts',
    'test/unit/{domain-text,memory-database,record-fields,sandbox-record,leases-options,runtime-list}.test.ts',
  ],
  lifecycle: [
    'test/unit/{acquire*,admission*,background-*,capacity*,destroy,eviction,engine,failed-starts,images,liveness*,reconcile-plan}.test.ts',
    'test/unit/{abandoned-starts,answers-in-time,handed-over,holds-up-nobody,told}.test.ts',
    'test/unit/{reconciler*,renewal,shutdown,sightings,starts,teardown,timers,tracked,turns}.test.ts',
  ],
};

export default defineConfig({
  test: { include: [...(SUITES[process.env.MUTATE ?? 'leases'] ?? [])], testTimeout: 4_000 },
});
