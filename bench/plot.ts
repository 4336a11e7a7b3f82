import type { Scale } from './scale-process.ts';

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 60;
const BOTTOM = 40;
const TOP = 20;
const RIGHT = 130;
const LINES = { reconcile: '#c0392b', renew: '#2471a3', status: '#7d3c98', list: '#d68910', take: '#1e8449' } as const;
const DECADES = { lowest: -1, highest: 4 };

/** How the cost of each thing grows, both axes logarithmic, as an SVG: a straight line of slope one is linear. */
export function growthPlot(growth: readonly Scale[]): string {
  const counts = growth.map(({ count }) => Math.log10(count));
  const [first, last] = [Math.min(...counts), Math.max(...counts)];
  const x = (count: number): number => LEFT + ((Math.log10(count) - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
  const y = (ms: number): number => {
    const { lowest, highest } = DECADES;
    const part = (Math.max(lowest, Math.log10(ms)) - lowest) / (highest - lowest);
    return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
  };
  const text = (at: { x: number; y: number }, words: string, more = ''): string =>
    `<text x="${at.x.toFixed(1)}" y="${at.y.toFixed(1)}" ${more}>${words}</text>`;
  const grid: string[] = [];
  for (let decade = DECADES.lowest; decade <= DECADES.highest; decade += 1) {
    const at = y(10 ** decade);
    grid.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at.toFixed(1)}" y2="${at.toFixed(1)}" stroke="#ddd"/>`);
    grid.push(text({ x: LEFT - 6, y: at + 4 }, `${10 ** decade} ms`, 'text-anchor="end"'));
  }
  for (const { count } of growth) {
    grid.push(text({ x: x(count), y: HEIGHT - BOTTOM + 18 }, String(count), 'text-anchor="middle"'));
  }
  const lines = Object.entries(LINES).map(([name, colour]) => {
    const points = growth.map((one) => ({ x: x(one.count), y: y(one[name as keyof typeof LINES].ms) }));
    const path = points.map((at) => `${at.x.toFixed(1)},${at.y.toFixed(1)}`).join(' ');
    const end = points.at(-1)!;
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${text({ x: end.x + 8, y: end.y + 4 }, name, `fill="${colour}"`)}`;
  });
  const title = text(
    { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6 },
    'sandboxes of the fleet',
    'text-anchor="middle"',
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>
${[...grid, ...lines, title].join('\n')}
</svg>
`;
}
