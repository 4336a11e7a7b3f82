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

export const CONTRACT = ['test/contract/leases-memory.test.ts'];
export const LIFECYCLE = ['test/unit/acquire.test.ts', 'test/unit/teardown.test.ts', 'test/unit/timers.test.ts'];
