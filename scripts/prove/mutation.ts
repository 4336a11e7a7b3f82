/** One rule taken away: a text of the source that stands for it, and what stands there without it. */
export interface Mutation {
  /** What the rule is, in a few words. */
  readonly rule: string;
  readonly file: string;
  /** Must occur exactly once in the file. */
  readonly from: string;
  readonly to: string;
  /** Test files, one of which has to fail. */
  readonly noticedBy: readonly string[];
}

export type Row = readonly [rule: string, from: string, to: string];

/** The rules of one file. */
export function rulesOf(file: string, noticedBy: readonly string[], rows: readonly Row[]): readonly Mutation[] {
  return rows.map(([rule, from, to]) => ({ rule, file, from, to, noticedBy }));
}

const unit = (...names: readonly string[]): readonly string[] => names.map((name) => `test/unit/${name}.test.ts`);

export const CONTRACT = ['test/contract/leases-memory.test.ts', 'test/contract/leases-edges.test.ts'];
export const RECORD = [...unit('sandbox-record'), ...CONTRACT];
export const MEMORY = [...unit('memory-database'), ...CONTRACT];
export const REDIS = ['test/contract/leases-redis.real.test.ts', 'test/contract/leases-edges.real.test.ts'];
export const LIFECYCLE = [
  ...unit('reconcile-plan', 'tracked', 'sightings', 'turns', 'engine', 'failed-starts', 'destroy', 'liveness'),
  ...unit('renewal', 'reconciler', 'reconciler-parts', 'shutdown', 'acquire', 'starts', 'teardown', 'timers'),
  ...unit(
    'acquire-moves',
    'abandoned-starts',
    'answers-in-time',
    'handed-over',
    'liveness-late',
    'holds-up-nobody',
    'told',
  ),
];
export const CAPACITY = [...unit('capacity', 'eviction', 'admission', 'census', 'headroom', 'holds-up-nobody')];
export const LOOP = unit('background-loop', 'background-stop');
