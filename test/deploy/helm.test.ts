import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Field } from '../../src/config/fields.ts';
import { schema } from '../../src/config/schema.ts';
import { CHART, EXAMPLES, over, type Tree } from './helm-chart.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(resolve(root, name), 'utf8');
const chart = (name: string): string => readFileSync(resolve(CHART, name), 'utf8');
const values: Tree = parse(chart('values.yaml'));
const shape: Tree = JSON.parse(chart('values.schema.json'));
const readme = chart('README.md');
const validate = new Ajv2020({ allowUnionTypes: true, strictTypes: false }).compile(shape);

const isMap = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
const resolved = (node: Tree): Tree => {
  const whole = node.$ref === undefined ? node : shape.$defs[node.$ref.replace('#/$defs/', '')];
  // A part that may be null as well: what it is otherwise.
  const other = whole.anyOf?.find((choice: Tree) => choice.type === 'object');
  return other ?? whole;
};

/** What the table lists: every value, where free-form ones such as `resources` are one. */
function leaves(node: Tree, given: Tree, at: string): (readonly [string, string])[] {
  const { properties } = resolved(node);
  if (!isMap(given) || properties === undefined) return [[at, JSON.stringify(given)]];
  return Object.entries(given).flatMap(([key, value]) =>
    leaves(properties[key], value, at === '' ? key : `${at}.${key}`),
  );
}

test('[G-06] the README lists every value with its default, and no other', () => {
  const [, table = ''] = /\| value \| default \|.*\n(.*(?:\n\|.*)*)/.exec(readme) ?? [];
  const rows = [...table.matchAll(/^\| `([^`]+)` \| `([^`]*)` \|/gm)].map((row) => [row[1], row[2]]);
  expect(rows).toEqual(leaves(shape, values, ''));
  expect(rows.length).toBeGreaterThan(70);
});

test('the schema knows every value, refuses any other, and is fulfilled but for the engine’s mode', () => {
  const open: string[] = [];
  const visit = (node: Tree, at: string): void => {
    if (node.properties !== undefined && node.additionalProperties !== false) open.push(at);
    for (const [key, part] of Object.entries<Tree>(node.properties ?? {})) visit(part, `${at}/${key}`);
    for (const part of [node.items, ...(node.anyOf ?? [])]) if (part !== undefined) visit(part, at);
  };
  visit(shape, '');
  visit(shape.$defs.profile, 'profile');
  // Entries of Kubernetes' own shape have more keys than the chart looks at.
  expect(open).toEqual(['/extraEnv']);
  expect(Object.keys(values).sort()).toEqual(
    Object.keys(shape.properties)
      .filter((key) => key !== 'global')
      .sort(),
  );
  expect(validate(values)).toBe(false);
  expect(validate.errors?.map(({ instancePath }) => instancePath)).toEqual(['/engine/mode']);
  for (const [name, example] of Object.entries(EXAMPLES)) expect(validate(over(values, example)), name).toBe(true);
});

/** Every key below, with `[]` for items and `<name>` for keys of the user's own. */
function keysOfBroker(field: Field<unknown, string>, at = ''): string[] {
  return Object.entries(field.parts).flatMap(([name, part]) => {
    const path = name === '[]' ? `${at}[]` : at === '' ? name : `${at}.${name}`;
    return [path, ...keysOfBroker(part, path)];
  });
}

function keysOfShape(given: Tree, at = ''): string[] {
  const node = resolved(given);
  const below = (part: Tree, path: string): string[] => [path, ...keysOfShape(part, path)];
  const named = Object.entries<Tree>(node.properties ?? {});
  const more = node.additionalProperties || undefined;
  return [
    ...named.flatMap(([name, part]) => below(part, at === '' ? name : `${at}.${name}`)),
    ...(node.items === undefined ? [] : below(node.items, `${at}[]`)),
    ...(more === undefined ? [] : below(more, `${at}.<name>`)),
  ];
}

test('[G-06] the schema’s config has the keys of the broker’s own configuration, and takes its example', () => {
  const wanted = keysOfBroker(schema).sort();
  expect(keysOfShape(shape.properties.config).sort()).toEqual(wanted);
  expect(wanted.length).toBeGreaterThan(70);
  const example = over(parse(read('config.example.yaml')), { server: { host: '0.0.0.0' } });
  expect(validate({ ...over(values, { engine: { mode: 'node' } }), config: example })).toBe(true);
});

test('chart, package and image are of one version, and the pods run as the image’s user with its arguments', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(parse(chart('Chart.yaml'))).toMatchObject({ version, appVersion: version });
  const image = read('Dockerfile');
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(image) ?? [];
  const deployment = chart('templates/deployment.yaml');
  expect(deployment).toContain(`runAsUser: ${user}\n`);
  expect(deployment).toContain(`runAsGroup: ${group}\n`);
  const [, args = '[]'] = /^CMD (\[.*\])$/m.exec(image) ?? [];
  expect(deployment).toContain(`args: [${(JSON.parse(args) as string[]).join(', ')}]`);
});

test('every link of the README leads somewhere, and every image has a version', () => {
  for (const [, target = ''] of readme.matchAll(/\]\(([^)#\s]+)\)/g)) {
    expect(existsSync(resolve(dirname(resolve(CHART, 'README.md')), target)), target).toBe(true);
  }
  for (const image of [values.engine.bundled.image, values.redis.image]) expect(image).toMatch(/:(?!latest)[\w.-]+$/);
});
