/** One line of the table: what was measured, against which floor of the same run, and what is wanted. */
export interface Row {
  readonly what: string;
  readonly measured: string;
  readonly against: string;
  /** What the goal is about: a ratio, or an absolute figure. */
  readonly value: number;
  readonly goal: { readonly at: 'most' | 'least'; readonly value: number };
  readonly unit: 'x' | 'ms' | 'calls' | 'MB';
}

/** By how much a figure may miss its goal on a noisy machine before the run counts as failed. */
const TOLERANCE = 0.15;

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Of the sorted values the one at this part of the way. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

/** Median and the middle half, as text. */
export function spread(values: readonly number[], digits = 1): string {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(values, part).toFixed(digits));
  return `${middle} (${low}–${high})`;
}

export type Verdict = 'met' | 'within 15 %' | 'MISSED';

export function verdict({ value, goal }: Row): Verdict {
  const over = goal.at === 'most' ? value / goal.value : goal.value / value;
  if (over <= 1) return 'met';
  return over <= 1 + TOLERANCE ? 'within 15 %' : 'MISSED';
}

export function table(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const { what, measured, against, value, goal, unit } = row;
    const digits = unit === 'x' ? 2 : unit === 'calls' ? 0 : 1;
    const goalText = `${goal.at === 'most' ? '≤' : '≥'} ${goal.value} ${unit}`;
    return [what, measured, against, `${value.toFixed(digits)} ${unit}`, goalText, verdict(row)];
  });
  return markdown(['what', 'measured', 'against', 'figure', 'goal', ''], lines);
}

export function markdown(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, n) => Math.max(title.length, ...lines.map((line) => (line[n] ?? '').length)));
  const print = (cells: readonly string[]): string =>
    `| ${cells.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join(' | ')} |`;
  return [print(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...lines.map(print)].join('\n');
}

export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
