import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const src = resolve(import.meta.dirname, '../../src');

/** Which rooms a room may import from, besides itself and packages. */
const MAY_SEE: Record<string, readonly string[]> = {
  'main.ts': ['broker.ts', 'config', 'domain', 'observability'],
  'broker.ts': ['http', 'service', 'lifecycle', 'leases', 'runtime', 'observability', 'config', 'domain'],
  http: ['service', 'observability', 'domain'],
  service: ['lifecycle', 'leases', 'runtime', 'observability', 'domain'],
  lifecycle: ['leases', 'runtime', 'observability', 'domain'],
  leases: ['domain'],
  runtime: ['domain'],
  observability: ['domain'],
  config: ['domain'],
  domain: [],
};

const files = (readdirSync(src, { recursive: true }) as string[])
  .map((name) => join(src, name))
  .filter((path) => path.endsWith('.ts') && statSync(path).isFile());

const roomOf = (path: string): string => relative(src, path).split('/')[0] ?? '';
const importsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');

test('imports go down the house only', () => {
  const wrong: string[] = [];
  for (const path of files) {
    for (const target of importsOf(path)) {
      if (!target.startsWith('.')) continue;
      const from = roomOf(path);
      const to = roomOf(resolve(dirname(path), target));
      if (from !== to && !(MAY_SEE[from] ?? []).includes(to)) wrong.push(`${relative(src, path)} imports ${to}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(files.length).toBeGreaterThan(5);
});

test('only its own room speaks to a dependency', () => {
  const OWNERS: Record<string, string> = {
    dockerode: 'runtime',
    ioredis: 'leases',
    fastify: 'http',
    'prom-client': 'observability',
    pino: 'observability',
    yaml: 'config',
  };
  const wrong = files.flatMap((path) =>
    importsOf(path)
      .filter((name) => OWNERS[name] !== undefined && OWNERS[name] !== roomOf(path))
      .map((name) => `${relative(src, path)} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('only the background loop repeats a timer', () => {
  const wrong = files.filter((path) => /\bsetInterval\(/.test(readFileSync(path, 'utf8')));
  expect(wrong.map((path) => relative(src, path))).toEqual([]);
});
