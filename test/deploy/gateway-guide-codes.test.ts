import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { PROBLEMS, RESERVED_CODES } from '../../src/http/problems.ts';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/gateway-guide.md'), 'utf8');
const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| (\S.*) \|$/gm)].map(
  ([, code = '', status = '', what = '']) => ({
    code,
    status: Number(status),
    what,
  }),
);

test('[H-08] the guide says of every code, with its status, what a client does', () => {
  expect(rows.map(({ code, status }) => ({ code, status }))).toEqual(
    ERROR_CODES.map((code) => ({ code, status: PROBLEMS[code].status })),
  );
});

test('[H-08] the guide tells a client to wait where the broker says so, and names what is reserved', () => {
  const waits = rows.filter(({ what }) => what.includes('`Retry-After`')).map(({ code }) => code);
  expect(waits).toEqual(ERROR_CODES.filter((code) => PROBLEMS[code].retryable));
  const reserved = rows.filter(({ what }) => what.startsWith('Reserved')).map(({ code }) => code);
  expect(reserved).toEqual(RESERVED_CODES);
});
