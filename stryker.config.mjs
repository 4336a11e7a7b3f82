/**
 * Mutation testing with the suites that need no service, a room at a time: MUTATE=leases or MUTATE=lifecycle (`npm run
 * mutate` runs both). Literals of text are left alone: a code in a closed union is held by the type checker, which
 * Stryker does not ask, and a message is for people.
 */
const ROOMS = {
  leases: [
    'src/domain/*.ts',
    'src/leases/memory-{database,spares,store}.ts',
    'src/leases/{record-fields,refusals,snapshot,transition,transitions-*}.ts',
  ],
  lifecycle: ['src/lifecycle/*.ts'],
};
const room = process.env.MUTATE ?? 'leases';

export default {
  testRunner: 'vitest',
  vitest: { configFile: 'scripts/prove/mutate.vitest.ts', related: false },
  plugins: ['@stryker-mutator/vitest-runner'],
  tsconfigFile: 'none', // TypeScript 7 has no API with which Stryker could rewrite it
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 10_000,
  timeoutFactor: 2,
  mutate: ROOMS[room],
  mutator: { excludedMutations: ['StringLiteral'] },
  ignorePatterns: ['/*', '!/src', '!/test', '!/scripts', '!/package.json', '!/config.example.yaml'],
  incremental: true,
  incrementalFile: `.run/mutate-${room}.incremental.json`,
  tempDirName: '.run/mutate',
  reporters: ['clear-text', 'progress-append-only', 'json'],
  clearTextReporter: { allowColor: false, logTests: false },
  jsonReporter: { fileName: `.run/mutate-${room}.json` },
  thresholds: { high: 95, low: 90, break: 85 },
};
