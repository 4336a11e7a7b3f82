import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'));

/** Several processes of Node start at once, on a machine that may be busy. */
const LIMIT_MS = 60_000;

function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((settle) => {
    execFile(process.execPath, ['src/main.ts', ...args], { cwd: root, timeout: LIMIT_MS }, (error, stdout, stderr) => {
      settle({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

test(
  '[G-01] --version and --help answer and end; what is no flag is named, with what there is',
  async () => {
    const [said, helped, unknown, empty, stray] = await Promise.all([
      run('--version'),
      run('--help'),
      run('--chekc'),
      run('--check', '--config', ''),
      run('config.yaml'),
    ]);
    expect(said).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect([helped.code, helped.stderr]).toEqual([0, '']);
    for (const flag of ['--config', '--check', '--version']) expect(helped.stdout).toContain(flag);
    for (const [refused, named] of [
      [unknown, '--chekc'],
      [empty, '--config needs the name of a file'],
      [stray, 'config.yaml'],
    ] as const) {
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toContain(named);
      expect(refused.stderr).toContain(helped.stdout);
    }
  },
  LIMIT_MS,
);
