import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger, logOutput } from '../../src/observability/logger.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'log-'));
  file = join(folder, 'broker.log');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function linesWritten(): Promise<number[]> {
  const text = await readFile(file, 'utf8');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line).n);
}

test('lines of one turn of the event loop are one write, in their order, and a disk is never waited for', async () => {
  const logger = createLogger('info', {}, logOutput(file));
  const written = vi.spyOn(fs, 'writeSync');
  const synced = vi.spyOn(fs, 'fsyncSync');
  for (let n = 0; n < 3; n += 1) logger.info({ n });
  expect(written).not.toHaveBeenCalled();
  await nextTurn();
  expect(written).toHaveBeenCalledTimes(1);
  logger.info({ n: 3 });
  await nextTurn();
  expect(written).toHaveBeenCalledTimes(2);
  expect(synced).not.toHaveBeenCalled();
  expect(await linesWritten()).toEqual([0, 1, 2, 3]);
});

test('a turn that says much does not keep it all in memory', async () => {
  const logger = createLogger('info', {}, logOutput(file));
  const written = vi.spyOn(fs, 'writeSync');
  for (let n = 0; n < 100; n += 1) logger.info({ n, text: 'x'.repeat(1_000) });
  expect(written.mock.calls.length).toBeGreaterThan(5);
  await nextTurn();
  expect(await linesWritten()).toEqual(Array.from({ length: 100 }, (_, n) => n));
});

test('what was said last is written when the process ends by itself', async () => {
  const program = `
    const { createLogger, logOutput } = await import(${JSON.stringify(resolve(import.meta.dirname, '../../src/observability/logger.ts'))});
    createLogger('info', {}, logOutput(${JSON.stringify(file)})).info({ n: 7 });
    process.exit(3);`;
  expect(spawnSync(process.execPath, ['--input-type=module', '-e', program]).status).toBe(3);
  expect(await linesWritten()).toEqual([7]);
});
