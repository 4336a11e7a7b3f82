import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Field } from '../../src/config/fields.ts';
import { defaultConfig, parseConfig } from '../../src/config/load-config.ts';
import { schema } from '../../src/config/schema.ts';

const root = resolve(import.meta.dirname, '../..');
const example = readFileSync(resolve(root, 'config.example.yaml'), 'utf8');
const documentation = readFileSync(resolve(root, 'docs/configuration.md'), 'utf8');

interface Key {
  readonly path: string;
  readonly field: Field<unknown, string>;
}

/** All keys below a field; those of list items are under `[]`, those of maps of the user's own under `<name>`. */
function keysBelow(field: Field<unknown, string>, at = ''): Key[] {
  return Object.entries(field.parts).flatMap(([name, part]) => {
    const path = name === '[]' ? `${at}[]` : at === '' ? name : `${at}.${name}`;
    return [{ path, field: part }, ...keysBelow(part, path)];
  });
}

const isSection = ({ initial }: Field<unknown, string>): boolean =>
  typeof initial === 'object' && initial !== null && Object.keys(initial).length > 0;

/** The keys that are written with a value rather than with further keys. */
const keys = keysBelow(schema).filter(({ path, field }) => /\w$/.test(path) && !isSection(field));
/** Of these, the ones that are there by default: not inside an item, or a part that is null. */
const standing = keys.filter(
  ({ path }) => !keys.some((outer) => /^[.[]/.test(path.slice(outer.path.length)) && path.startsWith(outer.path)),
);

test('[G-06] config.example.yaml holds every key with its default, and no other', () => {
  expect(parse(example)).toEqual(schema.initial);
  expect(standing.length).toBeGreaterThan(50);
});

test('[G-06] config.example.yaml makes the same configuration as no file, in any environment', () => {
  for (const env of [{}, { REDIS_URL: 'redis://h', DOCKER_HOST: 'tcp://h' }]) {
    expect(parseConfig(example, env)).toEqual(defaultConfig(env));
  }
});

test('[G-06] config.example.yaml shows the keys of items and of parts that are null, and what it shows can be used', () => {
  const shown = [...example.matchAll(/^ *(\w+): (\S+) # .*?for example: (.*?)(?:; null: .*)?$/gm)];
  for (const { path, field } of standing) {
    const parts = Object.keys(field.parts['[]']?.parts ?? field.parts).filter((name) => name !== '<name>');
    const name = path.split('.').at(-1);
    const value = shown.find((match) => match[1] === name)?.[3] ?? '';
    for (const part of parts) expect(value, `${path} shows ${part}`).toMatch(new RegExp(`[{ ]${part}: `));
  }
  const used = shown.reduce(
    (text, [line, name, initial, value]) =>
      text.replace(line, line.replace(/:.*/, `: ${name === 'tls' ? initial : value}`)),
    example.replace('sentinelName: null', 'sentinelName: main'),
  );
  const config = parseConfig(used, { BROKER_API_KEY: 'k', REGISTRY_PASSWORD: 'p' });
  expect(config.auth.keys).toEqual([{ name: 'gateway', key: 'k' }]);
  expect(config.profiles.get('default')).toMatchObject({
    registryAuth: { username: 'robot', password: 'p' },
    mounts: [{ source: '/srv/data', target: '/data', readOnly: true }],
  });
});

test('[G-06] every key that is accepted is in the result, under its own path', () => {
  const config: unknown = defaultConfig({});
  const step = (at: unknown, key: string): unknown =>
    at instanceof Map ? at.get('default') : (at as Record<string, unknown> | undefined)?.[key];
  const missing = standing
    .filter(({ path, field }) => `${path}${field.suffix}`.split('.').reduce(step, config) === undefined)
    .map(({ path }) => path);
  expect(missing).toEqual(['socketPath', 'host', 'port', 'tls'].map((key) => `runtime.docker.${key}`));
});

test('[G-06] docs/configuration.md names every key with its default, and no other', () => {
  const rows = [...documentation.matchAll(/^\| `([^`]+)` \| `([^`]*)` \|/gm)].map(([, key, initial]) => [key, initial]);
  const expected = standing.map(({ path, field: { initial } }) => [
    path,
    typeof initial === 'string' ? initial : JSON.stringify(initial),
  ]);
  expect(rows.toSorted()).toEqual(expected.toSorted());
  for (const { path } of keys) expect(documentation, path).toContain(`\`${path}\``);
});
