import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';

/**
 * The verdict on a run: its last line is `N passed, N failed`, and it fails when a test was skipped, left as todo or
 * tried again, or when there was none at all. Whatever makes a run fail is counted, so `0 failed` means success.
 *
 * With a file named in SANDBOX_BROKER_TALLY the numbers are appended to that instead of printed, as `passed failed`, for
 * a script that adds up several runs; a run without tests is then for that script to judge.
 */
export default class Verdict implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    // `-t` skips what it does not name; that is what was asked for.
    const filtered = this.#vitest?.config.testNamePattern !== undefined;
    const tally = process.env.SANDBOX_BROKER_TALLY;
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const faults = tests.map((test) => faultOf(test, filtered)).filter((fault) => fault !== null);
    const broken = modules.flatMap(brokenGroups);
    const passed = tests.filter((test) => test.result().state === 'passed' && faultOf(test, filtered) === null).length;
    const notes = [...faults.filter((fault) => fault !== 'failed'), ...broken];
    let failed = faults.length + broken.length + unhandledErrors.length;
    if (passed + failed === 0 && tally === undefined) {
      notes.push('no test was executed');
      failed = 1;
    }
    for (const note of notes) process.stdout.write(`✗ ${note}\n`);
    if (failed > 0) process.exitCode = 1;
    if (tally !== undefined) appendFileSync(tally, `${passed} ${failed}\n`);
    else process.once('exit', () => process.stdout.write(`${passed} passed, ${failed} failed\n`));
  }
}

/** Why a test counts against the run; `failed` when vitest has said it already, null when it does not. */
function faultOf(test: TestCase, filtered: boolean): string | null {
  const { state } = test.result();
  const name = `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`;
  if (state === 'failed') return 'failed';
  if (state === 'pending') return `not finished: ${name}`;
  if (test.options.mode === 'todo') return `todo: ${name}`;
  if (state === 'skipped') return filtered ? null : `skipped: ${name}`;
  return (test.diagnostic()?.retryCount ?? 0) > 0 ? `passed only when tried again: ${name}` : null;
}

/** Files that could not be loaded and suites whose hooks failed: their tests may all have passed, or never run. */
function brokenGroups(module: TestModule): readonly string[] {
  const groups: readonly (TestModule | TestSuite)[] = [module, ...module.children.allSuites()];
  return groups
    .filter((group) => group.errors().length > 0)
    .map(
      (group) =>
        `broken: ${relative(process.cwd(), module.moduleId)}${group === module ? '' : ` > ${(group as TestSuite).fullName}`}`,
    );
}
