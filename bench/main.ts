/**
 * npm run bench: measures what DESIGN promises, each against a floor of the same run, and prints one table. Fails when a
 * figure misses its goal by more than 15 %. Options: the parts to run (reacquire, starts, scale, parallel, many; without
 * any, the first three); `--plot FILE` draws how cost grows.
 */
import { writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { cleanUp } from './clean-up.ts';
import { growthPlot } from './plot.ts';
import { reacquire } from './reacquire.ts';
import { type Row, say, table, verdict } from './report.ts';
import { growthTable, scale } from './scale.ts';
import { parallelStarts, starts } from './starts.ts';
import { twoHundred } from './two-hundred.ts';

const PARTS = ['reacquire', 'starts', 'scale', 'parallel', 'many'];
const { positionals, values } = parseArgs({ allowPositionals: true, options: { plot: { type: 'string' } } });
const unknown = positionals.filter((part) => !PARTS.includes(part));
if (unknown.length > 0) {
  say(`unknown part ${unknown.join(', ')}; there are ${PARTS.join(', ')}`);
  process.exit(2);
}
const parts = new Set(positionals.length > 0 ? positionals : PARTS.slice(0, 3));
const print = (text: string): void => void process.stdout.write(`${text}\n`);

const rows: Row[] = [];
const texts: string[] = [];
try {
  if (parts.has('reacquire')) rows.push(...(await reacquire()));
  if (parts.has('starts')) rows.push(...(await starts()));
  if (parts.has('scale')) {
    const { rows: more, growth } = await scale();
    rows.push(...more);
    texts.push(growthTable(growth));
    if (values.plot !== undefined) writeFileSync(values.plot, growthPlot(growth));
  }
  if (parts.has('parallel')) texts.push(await parallelStarts());
  if (parts.has('many')) texts.push(await twoHundred());
} finally {
  await cleanUp();
}
const [cpu] = cpus();
print(
  `\n${cpus().length} × ${cpu?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.version}\n`,
);
if (rows.length > 0) print(`${table(rows)}\n`);
for (const text of texts) print(`${text}\n`);
const missed = rows.filter((row) => verdict(row) === 'MISSED');
for (const { what } of missed) say(`✗ ${what} misses its goal by more than 15 %`);
process.exit(missed.length > 0 ? 1 : 0);
