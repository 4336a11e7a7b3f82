/**
 * Draws the panels of the dashboard as one SVG, on standard output, from what a Prometheus answers to their queries:
 * `node scripts/draw-dashboard.ts --prometheus http://127.0.0.1:9090 --from <epoch s> --to <epoch s> > dashboard.svg`.
 * docs/dashboard.png is such a drawing, made a bitmap by `rsvg-convert`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

interface Panel {
  readonly type: 'row' | 'stat' | 'timeseries';
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: {
    readonly defaults: { readonly unit: string; readonly mappings?: object[]; readonly thresholds: Thresholds };
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[];
}

interface Thresholds {
  readonly steps: readonly { readonly color: string; readonly value: number | null }[];
}

interface Line {
  readonly name: string;
  readonly points: readonly (readonly [number, number])[];
}

const { values } = parseArgs({
  options: {
    prometheus: { type: 'string', default: 'http://127.0.0.1:9090' },
    from: { type: 'string' },
    to: { type: 'string' },
    job: { type: 'string', default: '.*' },
  },
});
const to = Number(values.to ?? Date.now() / 1000);
const from = Number(values.from ?? to - 600);
const step = Math.max(1, (to - from) / 150);
const UNIT_X = 48;
const UNIT_Y = 22;
const MOST_LINES = 6;
const COLORS = ['#2f7ed8', '#d9822b', '#3d9950', '#b23a48', '#7d5ba6', '#4a4a4a'];
const FILLS: Readonly<Record<string, string>> = { green: '#3d9950', yellow: '#d9a514', red: '#c4162a' };

const file = join(import.meta.dirname, '../helm/sandbox-broker/files/dashboard.json');
const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: Panel[] };
const parts = await Promise.all(panels.map(draw));
const height = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h)) * UNIT_Y;
const width = 24 * UNIT_X;
process.stdout.write(
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    'font-family="DejaVu Sans, sans-serif" font-size="11" shape-rendering="crispEdges">' +
    `<rect width="100%" height="100%" fill="#ffffff"/>${parts.join('\n')}</svg>\n`,
);

async function draw(panel: Panel): Promise<string> {
  const { x, y, w, h } = panel.gridPos;
  const [left, top] = [x * UNIT_X, y * UNIT_Y];
  if (panel.type === 'row') return text(left + 6, top + 16, panel.title, 'font-size="14" font-weight="bold"');
  const lines = (await Promise.all((panel.targets ?? []).map(ask))).flat().slice(0, MOST_LINES);
  const [wide, high] = [w * UNIT_X - 6, h * UNIT_Y - 6];
  const inside = panel.type === 'stat' ? big(panel, lines, wide, high) : graph(panel, lines, wide, high);
  return (
    `<g transform="translate(${left + 3} ${top + 3})"><rect width="${wide}" height="${high}" fill="none" stroke="#d0d0d0"/>` +
    `${inside}${text(8, 16, panel.title, 'font-weight="bold"')}</g>`
  );
}

/** The series of one query, the largest first. */
async function ask({ expr, legendFormat = '' }: NonNullable<Panel['targets']>[number]): Promise<Line[]> {
  const query = expr
    .replaceAll('$__rate_interval', `${Math.max(10, Math.ceil(step * 4))}s`)
    .replaceAll('$job', values.job);
  const search = new URLSearchParams({ query, start: String(from), end: String(to), step: String(step) });
  const reply = await fetch(`${values.prometheus}/api/v1/query_range?${search}`);
  const { data, error } = (await reply.json()) as {
    error?: string;
    data?: { result: { metric: Record<string, string>; values: [number, string][] }[] };
  };
  if (data === undefined) throw new Error(`${query}: ${error}`);
  return data.result
    .map(({ metric, values: samples }) => ({
      name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
      points: samples
        .map(([time, value]) => [time, Number(value)] as const)
        .filter(([, value]) => Number.isFinite(value)),
    }))
    .sort((a, b) => sum(b) - sum(a));
}

function big({ fieldConfig }: Panel, [line]: readonly Line[], wide: number, high: number): string {
  const { unit, mappings, thresholds } = fieldConfig!.defaults;
  const last = line?.points.at(-1)?.[1];
  const reached = thresholds.steps
    .filter(({ value }) => value === null || (last !== undefined && last >= value))
    .at(-1);
  const words = mappings === undefined ? format(last ?? Number.NaN, unit) : last === 1 ? 'yes' : 'no';
  return (
    `<rect width="${wide}" height="${high}" fill="${FILLS[reached?.color ?? ''] ?? '#888888'}" fill-opacity="0.25"/>` +
    text(wide / 2, high - 18, words, 'font-size="26" text-anchor="middle"')
  );
}

function graph({ fieldConfig }: Panel, lines: readonly Line[], wide: number, high: number): string {
  const { unit } = fieldConfig!.defaults;
  const [left, top, right, bottom] = [48, 26, wide - 8, high - 34];
  const scale = unit === 'bytes' ? 2 ** 20 : 1;
  const most = scale * roundUp(Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value / scale))));
  const atX = (time: number): string => (left + ((time - from) / (to - from)) * (right - left)).toFixed(1);
  const atY = (value: number): string => (bottom - (value / most) * (bottom - top)).toFixed(1);
  const grid = [0, 0.5, 1].map((share) => {
    const y = atY(most * share);
    return (
      `<path d="M${left} ${y}H${right}" stroke="#e4e4e4"/>` +
      text(left - 4, Number(y) + 4, format(most * share, unit), 'text-anchor="end" font-size="9"')
    );
  });
  const curves = lines.map(({ points }, index) => {
    const color = COLORS[index % COLORS.length];
    let path = '';
    let before = Number.NEGATIVE_INFINITY;
    for (const [time, value] of points) {
      path += `${time - before > step * 1.5 ? 'M' : 'L'}${atX(time)} ${atY(value)}`;
      before = time;
    }
    return `<path d="${path}" fill="none" stroke="${color}" stroke-width="1.5" shape-rendering="auto"/>`;
  });
  const minutes = `0 to ${Math.round((to - from) / 60)} min`;
  return (
    grid.join('') +
    curves.join('') +
    legend(lines, wide, high) +
    text(right, 16, minutes, 'text-anchor="end" font-size="9"')
  );
}

function legend(lines: readonly Line[], wide: number, high: number): string {
  let [x, y] = [8, high - 20];
  return lines
    .map(({ name }, index) => {
      const words = name === '' ? 'value' : name;
      const space = 18 + words.length * 6;
      if (x + space > wide && x > 8) [x, y] = [8, y + 13];
      const drawn =
        `<path d="M${x} ${y - 3}h10" stroke="${COLORS[index % COLORS.length]}" stroke-width="3"/>` +
        text(x + 13, y, words, 'font-size="9"');
      x += space;
      return drawn;
    })
    .join('');
}

function sum({ points }: Line): number {
  return points.reduce((total, [, value]) => total + value, 0);
}

/** 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  if (value === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10);
}

function format(value: number, unit: string): string {
  if (!Number.isFinite(value)) return '–';
  const short = (number: number): string => String(Number(number.toPrecision(3)));
  if (unit === 'bytes') return `${short(value / 2 ** 20)} MiB`;
  if (unit === 's') return value < 1 ? `${short(value * 1000)} ms` : `${short(value)} s`;
  return unit === 'ops' ? `${short(value)}/s` : short(value);
}

function text(x: number, y: number, words: string, style: string): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" fill="#222222" ${style}>${escaped}</text>`;
}
