import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { markdown, type Row, say } from './report.ts';
import type { Scale, Timed } from './scale-process.ts';

export const COUNTS = [10, 100, 1_000, 10_000];
const RECONCILED = 500;
const MANY = 10_000;
const PER_RENEWAL = 200;

/** One replica with so many sandboxes, measured in a process of its own. */
async function measure(count: number): Promise<Scale> {
  const script = join(import.meta.dirname, 'scale-process.ts');
  const child = fork(script, [String(count)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit').then(([code]) =>
    Promise.reject(new Error(`the measured process ended with ${code}`)),
  );
  ended.catch(() => undefined);
  const [scale] = (await Promise.race([once(child, 'message'), ended])) as [Scale];
  await once(child, 'exit');
  say(`scale: ${count} sandboxes`);
  return scale;
}

export async function scale(): Promise<{ readonly rows: readonly Row[]; readonly growth: readonly Scale[] }> {
  const growth: Scale[] = [];
  for (const count of COUNTS) growth.push(await measure(count));
  const some = await measure(RECONCILED);
  const many = growth.find(({ count }) => count === MANY)!;
  return { rows: [...renewal(many), ...reconcile(some), memory(many), stalls(many)], growth };
}

function renewal({ renew }: Scale): Row[] {
  const what = `${MANY} leases renewed`;
  return [
    {
      ...{ what: `${what}, wall time`, measured: `${renew.ms.toFixed(0)} ms`, against: '' },
      ...{ value: renew.ms, goal: { at: 'most', value: 500 }, unit: 'ms' },
    },
    {
      ...{ what: `${what}, longest stall`, measured: `${renew.stallMs.toFixed(1)} ms`, against: '' },
      ...{ value: renew.stallMs, goal: { at: 'most', value: 20 }, unit: 'ms' },
    },
    {
      ...{ what: `${what}, round trips`, measured: callsOf(renew), against: `one per ${PER_RENEWAL} leases` },
      ...{ value: renew.calls.renew ?? 0, goal: { at: 'most', value: MANY / PER_RENEWAL }, unit: 'calls' },
    },
  ];
}

function reconcile({ reconcile: pass }: Scale): Row[] {
  const what = `reconcile with ${RECONCILED} containers`;
  return [
    {
      ...{ what: `${what}, list calls`, measured: callsOf(pass), against: `${pass.ms.toFixed(0)} ms` },
      ...{ value: pass.calls.list ?? 0, goal: { at: 'most', value: 1 }, unit: 'calls' },
    },
  ];
}

const memory = ({ residentMb }: Scale): Row => ({
  ...{ what: `${MANY} tracked sandboxes, memory above idle`, measured: `${residentMb.toFixed(1)} MB`, against: '' },
  ...{ value: residentMb, goal: { at: 'most', value: 60 }, unit: 'MB' },
});

/** The longest stall of anything that a replica does again and again, or that a caller can ask for. */
function stalls({ renew, reconcile: pass, list, status, take }: Scale): Row {
  const all = Object.entries({ renew, reconcile: pass, list, status, take });
  const [name, worst] = all.reduce((a, b) => (b[1].stallMs > a[1].stallMs ? b : a));
  return {
    ...{ what: `${MANY} sandboxes, longest stall of any loop`, measured: name, against: '' },
    ...{ value: worst.stallMs, goal: { at: 'most', value: 20 }, unit: 'ms' },
  };
}

const callsOf = ({ calls }: Timed): string =>
  Object.entries(calls)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ');

const SHOWN = ['take', 'renew', 'reconcile', 'list', 'status'] as const;

/** How the cost of each thing grows with the number of sandboxes. */
export function growthTable(growth: readonly Scale[]): string {
  const head = [
    'sandboxes',
    ...SHOWN.map((name) => `${name}, ms`),
    ...SHOWN.map((name) => `${name}, stall`),
    'memory, MB',
  ];
  return markdown(
    head,
    growth.map((one) => [
      String(one.count),
      ...SHOWN.map((name) => one[name].ms.toFixed(name === 'take' ? 3 : 1)),
      ...SHOWN.map((name) => one[name].stallMs.toFixed(1)),
      one.residentMb.toFixed(1),
    ]),
  );
}
