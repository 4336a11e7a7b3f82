import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadScripts, SCRIPTS } from '../../src/leases/redis-scripts.ts';

const lua = resolve(import.meta.dirname, '../../src/leases/lua');
const files = readdirSync(lua).filter((name) => name.endsWith('.lua'));

test('[L-21] scripts touch declared keys only', () => {
  const wrong: string[] = [];
  let calls = 0;
  for (const [name, text] of loadScripts()) {
    for (const [call, command, key] of text.matchAll(/redis\.p?call\('([A-Z]+)'(?:, ([^,)]+))?/g)) {
      calls += 1;
      const declared = command === 'PUBLISH' ? /^channel$/ : /^(?:KEYS\[[\dn]+\]?|(?:unheld_)?key)$/;
      if (command !== 'TIME' && !declared.test(key ?? '')) wrong.push(`${name}: ${call}`);
    }
    expect(text).toContain('\nlocal unheld_key = KEYS[#KEYS]\n');
    for (const [assignment] of text.matchAll(/\bkey(?:, \w+)* = [^\n]+/g)) {
      if (!assignment.includes('KEYS[7]')) wrong.push(`${name}: ${assignment}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(calls).toBeGreaterThan(100);
});

test('every script is loaded, and says what it replies', () => {
  expect(files.map((name) => name.replace('.lua', '')).sort()).toEqual([...SCRIPTS].sort());
  for (const name of files) expect(readFileSync(join(lua, name), 'utf8'), name).toMatch(/^--[\s\S]*?-- Replies: /);
});

test('[L-29] no number is spelled by Lua itself', () => {
  for (const [name, text] of loadScripts()) {
    expect(text, name).not.toMatch(/tostring\(|cjson|%d'|%s'/);
  }
});
