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

export const CONTRACT = ['test/contract/leases-memory.test.ts'];
export const REDIS = ['test/contract/leases-redis.real.test.ts'];
export const LIFECYCLE = [
  'test/unit/acquire.test.ts',
  'test/unit/teardown.test.ts',
  'test/unit/timers.test.ts',
  'test/unit/destroy.test.ts',
  'test/unit/reconcile-plan.test.ts',
  'test/unit/failed-starts.test.ts',
];
