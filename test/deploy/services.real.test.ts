import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test as base, expect, onTestFinished } from 'vitest';
import { until } from '../support/redis.ts';

const root = resolve(import.meta.dirname, '../..');
const test = base.extend<{ folder: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest wants a pattern
  folder: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), 'services-'));
    await use(folder);
    await rm(folder, { recursive: true, force: true });
  },
});

function held(folder: string) {
  const child = spawn('bash', ['scripts/hold-services.sh'], {
    cwd: root,
    env: { ...process.env, SANDBOX_BROKER_RUN_DIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = { text: '' };
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.text += text;
  });
  return { child, said, ended: once(child, 'exit') };
}

test('services are held until Ctrl-C, by one at a time, and tell another terminal how to use them (real)', async ({
  folder,
}) => {
  const first = held(folder);
  const file = join(folder, 'services.env');
  await until(() => first.said.text.includes('Ctrl-C'), 'the services to be held');
  expect(await readFile(file, 'utf8')).toContain(`export DOCKER_HOST='${process.env.DOCKER_HOST}' REDIS_URL='`);
  const second = held(folder);
  expect(await second.ended).toEqual([1, null]);
  expect(second.said.text).toContain(`kill ${first.child.pid}`);
  expect(existsSync(file)).toBe(true);
  first.child.kill('SIGINT');
  expect(await first.ended).toEqual([0, null]);
  expect(existsSync(file)).toBe(false);
});
