import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { dashboardText } from '../../scripts/dashboard.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { PROBLEMS } from '../../src/http/problems.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const files = 'helm/sandbox-broker/files';

interface Rule {
  readonly alert: string;
  readonly for?: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}

const { groups } = parse(read(`${files}/alerts.yaml`)) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = read(`${files}/dashboard.json`);
const headings = [...read('docs/runbook.md').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);

/** As GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

test('every alert has a severity, a summary that names the fleet, a description, and a section of the runbook', () => {
  const anchors = headings.map(anchorOf);
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning'], alert).toContain(labels.severity);
    expect(annotations.summary, alert).toContain('{{ $labels.job }}');
    expect(annotations.description.length, alert).toBeGreaterThan(40);
    expect(annotations.runbook_url).toBe(`docs/runbook.md#${anchorOf(alert)}`);
    expect(anchors).toContain(anchorOf(alert));
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test('no alert fires at one sample: it waits, looks at a time past, or measures for how long something has been so', () => {
  for (const { alert, for: wait, expr } of rules) {
    expect(
      wait ?? /increase\([^[]+\[(\d+m)\]|_oldest_(?:open_)?seconds|timestamp\(/.exec(expr)?.[0],
      alert,
    ).toBeDefined();
    // As old as it was when it was scraped: how far apart scrapes are must not matter.
    expect(expr, alert).not.toMatch(/\btime\(\)/);
  }
});

test('an alert about one replica names it', () => {
  const byReplica = rules.filter(({ expr }) => !/\bby \(namespace, job(, (profile|le))?\)/.test(expr));
  expect(byReplica.length).toBeGreaterThan(8);
  for (const { alert, annotations } of rules) {
    const named = annotations.summary.includes('{{ $labels.instance }}');
    expect(named, alert).toBe(byReplica.some((rule) => rule.alert === alert));
  }
});

test('docs/metrics.md names every loop that a broker runs', () => {
  const runs = [...read('src/broker.ts').matchAll(/\bloop\('(\w+)'|\bname: '(\w+)'/g)].map(
    ([, one, other]) => one ?? other,
  );
  expect(runs.length).toBeGreaterThan(5);
  const [, listed = ''] = /`loop`: ((?:`\w+`(?:, )?)+) \|/.exec(read('docs/metrics.md')) ?? [];
  expect(listed.split(', ').sort()).toEqual(runs.map((name) => `\`${name}\``).sort());
});

test('the runbook has a section for every alert and for every problem code with its status, and for none that is not there', () => {
  const alerts = headings.filter((heading) => heading.startsWith('SandboxBroker'));
  expect(alerts.sort()).toEqual(rules.map(({ alert }) => alert).sort());
  const codes = headings.filter((heading) => heading.startsWith('`'));
  expect(codes.sort()).toEqual(ERROR_CODES.map((code) => `\`${code}\` (${PROBLEMS[code].status})`).sort());
});

test('every reference within the runbook leads to a section', () => {
  const anchors = headings.map(anchorOf);
  const references = [...read('docs/runbook.md').matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor);
  expect(references.length).toBeGreaterThan(20);
  expect(references.filter((anchor) => !anchors.includes(anchor))).toEqual([]);
});

test('alerts name only problem codes that there are', () => {
  const lists = rules.flatMap(({ expr }) =>
    [...expr.matchAll(/code(?:=|!=|=~|!~)"([^"]*)"/g)].map(([, list = '']) => list),
  );
  expect(lists.length).toBeGreaterThan(1);
  for (const code of lists.flatMap((list) => list.split('|'))) expect(ERROR_CODES).toContain(code);
});

test('alerts and dashboard ask for metrics and labels that docs/metrics.md tells', () => {
  const rows = [...read('docs/metrics.md').matchAll(/^\| `([a-z0-9_]+)` \| (\w+) \|(.*?)\|/gm)];
  const known = new Map(
    rows.flatMap(([, name = '', type, labels = '']): [string, string][] =>
      type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => [`${name}_${part}`, labels]) : [[name, labels]],
    ),
  );
  const panels = (JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }).panels;
  const exprs = [...rules.map(({ expr }) => expr), ...panels.flatMap(({ targets = [] }) => targets.map((t) => t.expr))];
  const asked = exprs.flatMap((expr) => [
    ...expr.matchAll(/\b((?:sandbox_broker|nodejs|process)_\w+)(?:\{([^}]*)\})?/g),
  ]);
  expect(asked.length).toBeGreaterThan(80);
  for (const [, name = '', matchers = ''] of asked) {
    expect([...known.keys()]).toContain(name);
    for (const [, label = ''] of matchers.matchAll(/(\w+)(?:=|!)/g)) {
      if (label !== 'job') expect(known.get(name), `${name}{${label}}`).toContain(`\`${label}\``);
    }
  }
});

test('a number of the whole fleet is never summed up over replicas', () => {
  const panels = (JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }).panels;
  const exprs = [...rules.map(({ expr }) => expr), ...panels.flatMap(({ targets = [] }) => targets.map((t) => t.expr))];
  const asked = exprs.flatMap((expr) => [...expr.matchAll(/(\w+(?: by \([\w, ]+\))?) ?\(sandbox_broker_fleet_\w+/g)]);
  expect(asked.length).toBeGreaterThan(8);
  for (const [whole, how] of asked)
    expect(how, whole).toMatch(
      /^(max|min)( by \((namespace, job(, profile)?|state|profile)\))?$|^sum by \(instance\)$/,
    );
  const inner = exprs.flatMap((expr) => [...expr.matchAll(/.{0,4}sum by \(instance\) \(sandbox_broker_fleet/g)]);
  expect(inner.length).toBeGreaterThan(1);
  for (const [whole] of inner) expect(whole).toMatch(/^(.* )?max\(sum/);
});

test('the dashboard is the one that scripts/write-dashboard.ts writes, top-down, on a datasource that can be chosen', () => {
  expect(dashboard).toBe(dashboardText());
  const { panels, templating, annotations } = JSON.parse(dashboard) as {
    annotations: { list: object[] };
    panels: {
      type: string;
      title: string;
      datasource?: { uid: string };
      targets?: { datasource: { uid: string } }[];
    }[];
    templating: { list: { name: string; type: string }[] };
  };
  expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
    'Is it up?',
    'Is it quick?',
    'Is it full?',
    'Is it leaking?',
    'Which replica?',
  ]);
  // The chart puts the runbook there, where it is published.
  expect(dashboard.split('"links": []')).toHaveLength(2);
  expect(annotations.list).toMatchObject([{ datasource: { uid: '${datasource}' }, titleFormat: '{{alertname}}' }]);
  expect(templating.list).toContainEqual(expect.objectContaining({ name: 'datasource', type: 'datasource' }));
  for (const { type, datasource, targets = [] } of panels) {
    if (type === 'row') continue;
    for (const { uid } of [datasource!, ...targets.map((target) => target.datasource)])
      expect(uid).toBe('${datasource}');
  }
});
