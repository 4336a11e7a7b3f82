import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/load-config.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const read = (page: string): string => readFileSync(join(root, page), 'utf8');

test('[G-01] the aio profile of the docs is a valid configuration', () => {
  const [, text = ''] = /^```yaml\n(.*?)^```$/ms.exec(read('docs/aio-profile.md')) ?? [];
  const aio = parseConfig(text, {}).profiles.get('aio');
  expect(aio).toMatchObject({
    image: expect.stringContaining('agent-infra/sandbox'),
    resources: { memoryBytes: 2 * 2 ** 30, cpus: 2 },
    security: { capAdd: ['CHOWN', 'SETUID', 'SETGID', 'DAC_OVERRIDE'], seccomp: 'unconfined' },
  });
});

test('every link of a page leads somewhere', () => {
  const dead: string[] = [];
  for (const page of pages) {
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)#\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      if (!existsSync(join(root, dirname(page), target))) dead.push(`${page}: ${target}`);
    }
  }
  expect(dead).toEqual([]);
});

test('every npm script that a page names is there', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/(?:`|^)npm (?:run )?([a-z:]+)/gm)].map(([, name = '']) => name),
  );
  const missing = named.filter((name) => scripts[name] === undefined && !['ci', 'install', 'scripts'].includes(name));
  expect(missing).toEqual([]);
  expect(named.length).toBeGreaterThan(2);
});
