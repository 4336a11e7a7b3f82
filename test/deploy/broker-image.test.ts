import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { copiedSources, imageChanges, lastStage, productionPackages } from '../../scripts/image-files.ts';

/** The Dockerfile itself is not built in tests; what is assembled reads it, so that one text describes both. */

const root = resolve(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(resolve(root, name), 'utf8');
const dockerfile = read('Dockerfile');
const stage = lastStage(dockerfile);
const manifest = JSON.parse(read('package.json')) as {
  version: string;
  optionalDependencies: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};
const textOf = (name: string): string => stage.find((instruction) => instruction.name === name)?.text ?? '';

test('the last stage is read: its files, and what the engine is told', () => {
  const sample =
    'FROM a AS b\nRUN x\nFROM c\n# no\nENV A=1 \\\n  B=2\nCOPY --from=b /x /y\nCOPY one two ./\nCMD ["z"]\n';
  expect(lastStage(sample)).toEqual([
    { name: 'ENV', text: 'A=1 B=2' },
    { name: 'COPY', text: '--from=b /x /y' },
    { name: 'COPY', text: 'one two ./' },
    { name: 'CMD', text: '["z"]' },
  ]);
  expect(copiedSources(lastStage(sample))).toEqual(['one', 'two']);
  expect(imageChanges(lastStage(sample))).toEqual(['ENV A=1 B=2', 'CMD ["z"]']);
});

test('packages are chosen as npm ci --omit=dev --omit=optional does', () => {
  const packages = {
    '': {},
    'node_modules/b': {},
    'node_modules/a/node_modules/b': {},
    'node_modules/d': { dev: true },
    'node_modules/o': { optional: true },
    'node_modules/e': { devOptional: true },
  };
  expect(productionPackages(JSON.stringify({ packages }))).toEqual(['node_modules/a/node_modules/b', 'node_modules/b']);
  const chosen = new Set(productionPackages(read('package-lock.json')));
  for (const name of Object.keys(manifest.dependencies)) expect(chosen).toContain(`node_modules/${name}`);
  const left = [...Object.keys(manifest.devDependencies), ...Object.keys(manifest.optionalDependencies)];
  // Also needed by what the broker depends on.
  const shared = new Set(['@types/node', 'ajv-formats']);
  for (const name of left) expect(chosen.has(`node_modules/${name}`), name).toBe(shared.has(name));
});

test('the Dockerfile has the Node and the version of package.json, in stages, without what only BuildKit knows', () => {
  const node = /^ARG NODE_VERSION=(\S+)$/m.exec(dockerfile)?.[1];
  expect(new Set(Object.values(manifest.optionalDependencies))).toEqual(new Set([node]));
  expect(textOf('LABEL')).toContain(`org.opencontainers.image.version="${manifest.version}"`);
  expect(dockerfile.match(/^FROM node:\$\{NODE_VERSION\}-bookworm-slim( AS \w+)?$/gm)).toHaveLength(2);
  expect(dockerfile).toContain('npm ci --omit=dev --omit=optional --ignore-scripts');
  expect(dockerfile).not.toMatch(/^#\s*syntax=|--mount=|<<\w+|^ADD /m);
});

test('the image is nobody, in exec form, with a health check that needs no further program', () => {
  expect(textOf('USER')).toMatch(/^[1-9]\d+:[1-9]\d+$/);
  expect(JSON.parse(textOf('ENTRYPOINT'))).toEqual(['node', 'src/main.ts']);
  expect(JSON.parse(textOf('CMD'))).toEqual(['--config', '/etc/sandbox-broker/config.yaml']);
  const [program] = JSON.parse(textOf('HEALTHCHECK').replace(/^.*? CMD /, '')) as string[];
  expect(program).toBe('node');
  // Each of them is what an import of the assembled files takes; another one would be lost there.
  const known = ['LABEL', 'ENV', 'WORKDIR', 'COPY', 'USER', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'];
  expect(stage.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
});

test('the build sees what the Dockerfile copies and nothing else', () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names]) => names!.split(' '));
  const lines = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines[0]).toBe('*');
  expect(lines.slice(1).sort()).toEqual([...new Set(copied)].map((name) => `!${name}`).sort());
});
