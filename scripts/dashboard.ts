import { type Panel, ROWS } from './dashboard-rows.ts';

const SIZE = { stat: { w: 4, h: 4 }, timeseries: { w: 8, h: 7 } };
const UNITS = { short: 'short', s: 's', ops: 'ops', bytes: 'bytes', bool: 'short' };
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

/** What Grafana reads; the same text for the same rows. */
export function dashboardText(): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push({ type: 'row', title: row.title, collapsed: false, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of row.panels) {
      const { w, h } = SIZE[panel.kind];
      if (x + w > 24) {
        x = 0;
        y += height;
      }
      panels.push(panelOf(panel, { x, y, w, h }));
      x += w;
      height = h;
    }
    y += height;
  }
  const dashboard = {
    uid: 'sandbox-broker',
    title: 'Sandbox broker',
    description:
      'Top-down: is it up, is it quick, is it full, is it leaking, which replica. Made by scripts/write-dashboard.ts.',
    tags: ['sandbox-broker'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: { list: VARIABLES },
    // The chart puts one to the runbook here.
    links: [],
    annotations: { list: [FIRING] },
    panels: panels.map((panel, index) => ({ id: index + 1, ...panel })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

const VARIABLES = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', hide: 0, refresh: 1 },
  {
    name: 'job',
    label: 'Fleet',
    type: 'query',
    datasource: DATASOURCE,
    definition: 'label_values(sandbox_broker_build_info, job)',
    query: { query: 'label_values(sandbox_broker_build_info, job)', refId: 'job' },
    refresh: 2,
    hide: 0,
  },
];

/** Alerts, across all panels, for as long as they fire. */
const FIRING = {
  name: 'Alerts',
  datasource: DATASOURCE,
  enable: true,
  iconColor: 'red',
  expr: 'ALERTS{job=~"$job",alertname=~"SandboxBroker.+",alertstate="firing"}',
  titleFormat: '{{alertname}}',
  textFormat: '{{instance}}',
  step: '30s',
};

function panelOf({ title, kind, unit, description, queries, limits }: Panel, gridPos: object): object {
  const steps = limits === undefined ? [{ color: 'green', value: null }] : stepsOf(limits);
  const custom = kind === 'timeseries' ? { custom: { lineWidth: 1, fillOpacity: 10, spanNulls: false } } : {};
  const words = { 0: { text: 'no', index: 0 }, 1: { text: 'yes', index: 1 } };
  return {
    type: kind,
    title,
    description,
    gridPos,
    datasource: DATASOURCE,
    fieldConfig: {
      defaults: {
        unit: UNITS[unit],
        ...(kind === 'timeseries' ? { min: 0 } : {}),
        ...(unit === 'bool' ? { mappings: [{ type: 'value', options: words }] } : {}),
        thresholds: { mode: 'absolute', steps },
        ...custom,
      },
      overrides: [],
    },
    options:
      kind === 'stat'
        ? { colorMode: 'background', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'] } }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      ...(legend === '' ? {} : { legendFormat: legend }),
    })),
  };
}

function stepsOf([yellow, red]: readonly [number, number]): object[] {
  if (yellow <= red)
    return [
      { color: 'green', value: null },
      { color: 'yellow', value: yellow },
      { color: 'red', value: red },
    ];
  const good = { color: 'green', value: yellow };
  return red === 0
    ? [{ color: 'red', value: null }, good]
    : [{ color: 'red', value: null }, { color: 'yellow', value: red }, good];
}
