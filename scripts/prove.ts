/**
 * Takes each rule away from a copy of the source and runs the tests that should notice. Fails where none does, and
 * where a rule's text is not there any more. Options: a part of a rule's name, to prove only those.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { LIFECYCLE_MUTATIONS } from './prove/lifecycle-mutations.ts';
import type { Mutation } from './prove/mutation.ts';

const root = resolve(import.meta.dirname, '..');
const copy = join(root, '.run', `prove-${process.pid}`);
const wanted = process.argv[2] ?? '';
const mutations: readonly Mutation[] = [...LIFECYCLE_MUTATIONS].filter(({ rule }) => rule.includes(wanted));

function prepare(): void {
  mkdirSync(copy, { recursive: true });
  for (const part of [
    'src',
    'test',
    'scripts',
    'package.json',
    'tsconfig.json',
    'vitest.config.ts',
    'config.example.yaml',
    'docs',
    'openapi',
  ]) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
}

/** True if one of the tests fails without the rule. */
function isNoticed({ file, from, to, noticedBy }: Mutation): boolean {
  const path = join(copy, file);
  const whole = readFileSync(path, 'utf8');
  if (whole.split(from).length !== 2) throw new Error(`${file} does not hold this text exactly once: ${from}`);
  writeFileSync(
    path,
    whole.replace(from, () => to),
  );
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const run = spawnSync(process.execPath, [vitest, 'run', '--project', 'unit', '--bail', '1', ...noticedBy], {
      cwd: copy,
      encoding: 'utf8',
      timeout: 120_000,
    });
    return run.status !== 0;
  } finally {
    writeFileSync(path, whole);
  }
}

const missed: string[] = [];
try {
  prepare();
  for (const [index, mutation] of mutations.entries()) {
    const noticed = isNoticed(mutation);
    if (!noticed) missed.push(mutation.rule);
    process.stdout.write(
      `${index + 1}/${mutations.length} ${noticed ? 'noticed   ' : 'NOT NOTICED'} ${mutation.rule}\n`,
    );
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.stdout.write(`${mutations.length - missed.length} of ${mutations.length} rules are held by a test\n`);
process.exit(missed.length === 0 && mutations.length > 0 ? 0 : 1);
