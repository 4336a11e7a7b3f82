/**
 * Takes each rule away from a copy of the source and runs the tests that should notice. Fails where none does, where a
 * rule's text does not stand exactly once in its file, and where the tests fail without anything taken away. The
 * scripts of Redis are proved on redis-servers that the tests start by themselves. Options: a part of a rule's or a
 * file's name, to prove only those; `--jobs N` at a time.
 */
import { readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CAPACITY_MUTATIONS } from './prove/capacity-mutations.ts';
import { LIFECYCLE_MUTATIONS } from './prove/lifecycle-mutations.ts';
import { LUA_LIBRARY_MUTATIONS } from './prove/lua-library-mutations.ts';
import { LUA_MUTATIONS } from './prove/lua-mutations.ts';
import type { Mutation } from './prove/mutation.ts';
import { REMOVAL_MUTATIONS } from './prove/removal-mutations.ts';
import { SPARE_MUTATIONS } from './prove/spare-mutations.ts';
import { TAKE_MUTATIONS } from './prove/take-mutations.ts';
import { TIMER_MUTATIONS } from './prove/timer-mutations.ts';
import { Workbench } from './prove/workbench.ts';

const root = resolve(import.meta.dirname, '..');
const { positionals, values } = parseArgs({ allowPositionals: true, options: { jobs: { type: 'string' } } });
const wanted = positionals[0] ?? '';
const jobs = Number(values.jobs ?? Math.min(4, availableParallelism()));
const folder = join(root, '.run', `prove-${process.pid}`);
const mutations: readonly Mutation[] = [
  ...TAKE_MUTATIONS,
  ...REMOVAL_MUTATIONS,
  ...LIFECYCLE_MUTATIONS,
  ...TIMER_MUTATIONS,
  ...SPARE_MUTATIONS,
  ...CAPACITY_MUTATIONS,
  ...LUA_MUTATIONS,
  ...LUA_LIBRARY_MUTATIONS,
].filter(({ rule, file }) => rule.includes(wanted) || file.includes(wanted));

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const began = performance.now();
const faults = mutations
  .filter(({ file, from }) => readFileSync(join(root, file), 'utf8').split(from).length !== 2)
  .map(({ rule, file }) => `${rule}: its text does not stand exactly once in ${file}`);
const benches = Array.from({ length: jobs }, (_, n) => new Workbench(root, join(folder, String(n))));
process.once('exit', () => {
  for (const bench of benches) bench.stop();
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

if (faults.length === 0) {
  const suites = new Map(mutations.map(({ noticedBy }) => [noticedBy.join(' '), noticedBy]));
  await inParallel([...suites.values()], async (bench, files) => {
    if ((await bench.run(files)) !== 'passed') faults.push(`${files.join(' ')} fails with nothing taken away`);
  });
}
if (faults.length === 0) {
  let done = 0;
  await inParallel(mutations, async (bench, mutation) => {
    const outcome = await bench.without(mutation);
    const noticed = outcome === 'failed' || outcome === 'hung';
    if (!noticed)
      faults.push(`${mutation.rule}: ${outcome === 'passed' ? 'NOT NOTICED' : 'the tests could not be run'}`);
    done += 1;
    say(`${done}/${mutations.length} ${noticed ? 'noticed    ' : 'NOT NOTICED'} ${mutation.rule} (${mutation.file})`);
  });
}
for (const fault of faults) say(`✗ ${fault}`);
const seconds = ((performance.now() - began) / 1000).toFixed(0);
say(`${mutations.length - faults.length} of ${mutations.length} rules are held by a test, in ${seconds} s`);
process.exit(faults.length === 0 && mutations.length > 0 ? 0 : 1);

/** Each item on the next bench that is free. */
async function inParallel<T>(items: readonly T[], work: (bench: Workbench, item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    benches.map(async (bench) => {
      for (const item of rest) await work(bench, item);
    }),
  );
}
