import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadConfig, parseConfig, readText } from '../../src/config/load-config.ts';

const folder = mkdtempSync(join(tmpdir(), 'config-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

function load(content: string | Buffer) {
  const path = join(folder, 'config.yaml');
  writeFileSync(path, content);
  return loadConfig({ path, env: {}, readFile: readText });
}

const BYTE_ORDER_MARK = '\ufeff';

test.each([
  ['is empty', ''],
  ['holds a comment only', '# nothing yet\n'],
  ['is null', '~\n'],
  ['is two lines of nothing', '---\n'],
])('[G-01] a file that %s leaves every default as it is', (_what, content) => {
  expect(load(content)).toEqual(parseConfig('', {}));
});

test('[G-01] a byte order mark means nothing', () => {
  expect(load(`${BYTE_ORDER_MARK}deployment: marked\n`).deployment).toBe('marked');
});

test('[G-01] a file in another encoding is refused, instead of being read as something that nobody wrote', () => {
  const latin1 = Buffer.from('profiles: { p: { environment: { NAME: "caf\u00e9" } } }', 'latin1');
  const utf16 = Buffer.from(`${BYTE_ORDER_MARK}deployment: a`, 'utf16le');
  for (const content of [latin1, utf16]) expect(() => load(content)).toThrow(/config\.yaml: .*not UTF-8/);
  expect(load('profiles: { p: { environment: { NAME: "café" } } }').profiles.get('p')?.environment).toEqual({
    NAME: 'café',
  });
});

test('[G-01] of a file that cannot be read it says why, and what to do', () => {
  const read = (path: string) => () => loadConfig({ path, env: {}, readFile: readText });
  expect(read(join(folder, 'none.yaml'))).toThrow(/none\.yaml: .*ENOENT.*name another one with --config/);
  expect(read(folder)).toThrow(/config-files-\w+: .*EISDIR.*it is a folder/);
});

test('[G-01] aliases stand for whole values; merge keys, which YAML 1.2 has not, are named', () => {
  const text = 'profiles:\n  a: &a { image: x }\n  b: *a\n';
  const { profiles } = parseConfig(text, {});
  expect(profiles.get('b')).toEqual({ ...profiles.get('a'), name: 'b' });
  expect(() => parseConfig(`${text}  c: { <<: *a, port: 1 }\n`, {})).toThrow(/profiles\.c\.<<: .*write its keys out/);
});

const image = (reference: string) => () =>
  parseConfig(JSON.stringify({ profiles: { p: { image: reference } } }), {}).profiles.get('p')?.image;
const DIGEST = `sha256:${'0a'.repeat(32)}`;

test.each([
  'tool',
  'tool:1.2',
  'team/tool_a__b--c.d:V1.2-x_3',
  'registry.example/team/tool',
  'registry.example:5000/team/tool:1',
  'localhost/tool',
  '[::1]:5000/tool:1',
  `tool@${DIGEST}`,
  `registry.example:5000/team/tool:1@${DIGEST}`,
  DIGEST,
])('[R-13] %s is an image reference', (reference) => {
  expect(image(reference)()).toBe(reference);
});

test.each([
  '',
  ' tool',
  '-tool',
  'Tool',
  'team/Tool',
  'tool:',
  'tool:1:2',
  'tool:-1',
  `tool:${'x'.repeat(129)}`,
  'tool@latest',
  'tool@sha256:0a',
  'a//b',
  'tool/',
  '../tool',
  'tool?tag=1',
  'tool#x',
  'https://registry.example/tool',
  'user:password@registry.example/tool',
  'tool\nx',
])('[R-13] %j is none, and is refused by its key', (reference) => {
  expect(image(reference)).toThrow(/profiles\.p\.image: .* is not allowed; allowed: an image reference such as/);
});

test('[R-16] capabilities are named one by one: all of them at once is refused', () => {
  const capabilities = (...capAdd: string[]) =>
    parseConfig(JSON.stringify({ profiles: { p: { security: { capAdd } } } }), {});
  for (const all of ['ALL', 'CAP_ALL', 'all']) {
    expect(() => capabilities('CHOWN', all)).toThrow(/profiles\.p\.security\.capAdd\[1\]: .*not ALL/);
  }
  expect(capabilities('CHOWN', 'SYS_ALLOWED').profiles.get('p')?.security.capAdd).toEqual(['CHOWN', 'SYS_ALLOWED']);
});
