import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { SERVICE_CASES } from './alert-cases-service.ts';
import { STATE_CASES } from './alert-cases-state.ts';
import type { Series } from './alert-samples.ts';

const run = promisify(execFile);
const file = resolve(import.meta.dirname, '../../helm/sandbox-broker/files/alerts.yaml');

interface Rule {
  readonly alert: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] };
const CASES = [...STATE_CASES, ...SERVICE_CASES];
const rules = new Map(groups.flatMap(({ rules: some }) => some.map((rule) => [rule.alert, rule])));

const seriesOf = (series: Series): object[] =>
  Object.entries(series).map(([name, values]) => ({ series: name, values }));

/** One unit test of promtool. */
function unit(
  alertname: string,
  { series, at, every = 1 }: { series: Series; at: number; every?: number },
  expected: object[],
): object {
  return {
    interval: `${every}m`,
    input_series: seriesOf(series),
    alert_rule_test: [{ eval_time: `${at}m`, alertname, exp_alerts: expected }],
  };
}

test('every alert fires when it should, tells what happened to what, and stays quiet near it (promtool)', async () => {
  expect(CASES.map(({ alert }) => alert).sort()).toEqual([...rules.keys()].sort());
  const tests = CASES.flatMap(({ alert, fires, alsoFires = [], pending, quiet }) => {
    const { labels, annotations, for: wait } = rules.get(alert)!;
    expect(pending === undefined, alert).toBe(wait === undefined);
    const early = pending === undefined ? [] : [{ series: fires.series, at: pending }];
    const fired = {
      exp_labels: { ...labels, ...fires.labels },
      exp_annotations: { ...annotations, summary: fires.summary },
    };
    const firing = [fires, ...alsoFires.map((series) => ({ series, at: fires.at }))];
    return [
      ...firing.map((each) => unit(alert, each, [fired])),
      ...[...early, ...quiet].map((near) => unit(alert, near, [])),
    ];
  });
  const folder = await mkdtemp(join(tmpdir(), 'alerts-'));
  try {
    // JSON is YAML.
    const suite = { rule_files: [file], evaluation_interval: '1m', tests };
    await writeFile(join(folder, 'suite.yaml'), JSON.stringify(suite));
    const failed = await run('promtool', ['test', 'rules', join(folder, 'suite.yaml')]).then(
      () => '',
      ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
    );
    expect(failed).toBe('');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the alerts are a rule file that Prometheus accepts (promtool)', async () => {
  const { stdout } = await run('promtool', ['check', 'rules', file]);
  expect(stdout).toContain(`SUCCESS: ${rules.size} rules found`);
});
