import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutation } from './mutation.ts';

/** `failed`: a test failed. `hung`: the run had to be ended. `broken`: it failed, but no test did. */
export type Outcome = 'passed' | 'failed' | 'hung' | 'broken';

const PARTS = ['src', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts', 'config.example.yaml'];
/** No module of this project has state, so that files may share them. */
const FAST = ['--pool', 'threads', '--no-isolate', '--maxWorkers', '1'];
const LONGEST_MS = 45_000;

/** A copy of the source in which one rule at a time is taken away, and tests are run. */
export class Workbench {
  readonly #root: string;
  readonly #folder: string;
  #running: ChildProcess | null = null;

  /** `folder` is made; removing it is the caller's matter. */
  constructor(root: string, folder: string) {
    this.#root = root;
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    for (const part of PARTS) cpSync(join(root, part), join(folder, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  }

  /** Runs the tests that should notice. The copy is whole again afterwards. */
  async without({ file, from, to, noticedBy }: Mutation): Promise<Outcome> {
    const path = join(this.#folder, file);
    const whole = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      whole.replace(from, () => to),
    );
    try {
      return await this.run(noticedBy);
    } finally {
      writeFileSync(path, whole);
    }
  }

  /** Runs test files, up to the first test that fails. */
  async run(files: readonly string[]): Promise<Outcome> {
    const vitest = join(this.#root, 'node_modules', 'vitest', 'vitest.mjs');
    const report = join(this.#folder, 'report.json');
    writeFileSync(report, '{}');
    const options = [...FAST, '--bail', '1', '--reporter', 'json', '--outputFile', report];
    const child = spawn(process.execPath, [vitest, 'run', ...options, ...files], {
      cwd: this.#folder,
      stdio: 'ignore',
      detached: true, // a group of its own, so that nothing of it is left
    });
    this.#running = child;
    const late = setTimeout(() => this.stop(), LONGEST_MS);
    const [status] = await once(child, 'exit');
    clearTimeout(late);
    this.stop();
    this.#running = null;
    if (status === 0) return 'passed';
    if (status === null) return 'hung';
    return JSON.parse(readFileSync(report, 'utf8')).numFailedTests > 0 ? 'failed' : 'broken';
  }

  /** Ends what runs, with all that it started. */
  stop(): void {
    const pid = this.#running?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // nothing of it is left
    }
  }
}
