import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { SANDBOX_ID } from '../fakes/fake-service.ts';
import { listen, openApp } from '../http/harness.ts';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const run = promisify(execFile);

function why(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const { PATH = '' } = process.env;
  return run(process.execPath, ['scripts/why.ts', ...args], { env: { PATH, ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Ended) => ({ code, stdout, stderr }),
  );
}

const KEY = 'k'.repeat(32);

test('npm run why tells what happened and what the container said last, with a key from the environment', async () => {
  const h = openApp([{ name: 'gateway', key: KEY }]);
  const BROKER_URL = `http://127.0.0.1:${await listen(h.app)}/`;
  const { code, stdout } = await why([SANDBOX_ID], { BROKER_URL, BROKER_API_KEY: KEY });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^2026-\S+Z {2}held +created, key gateway +host:owner$/m);
  expect(stdout).toContain('it ended: killed; its last log lines:\n  bye\n');
  const refused = await why([SANDBOX_ID], { BROKER_URL });
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('BROKER_API_KEY') });
});

test('what is known is told, also where the engine cannot be asked or the record cannot be read', async () => {
  const { service, app } = openApp();
  service.logs = () => Promise.reject(new BrokerError('runtime_unavailable', 'The engine is away.'));
  service.get = () => Promise.reject(new BrokerError('record_unreadable', 'It cannot be read.'));
  const { code, stdout } = await why([SANDBOX_ID, '--url', `http://127.0.0.1:${await listen(app)}`]);
  expect(code).toBe(0);
  expect(stdout).toContain('  It cannot be read.');
  expect(stdout).toMatch(/held +created/);
  expect(stdout).toContain('no log lines: The engine is away.');
});

test('whatever is wrong is one line, and never a stack', async () => {
  const { app } = openApp();
  const broker = `http://127.0.0.1:${await listen(app)}`;
  const page = createServer((_request, reply) => void reply.end('<html>'));
  await new Promise<void>((done) => void page.listen(0, '127.0.0.1', done));
  onTestFinished(() => void page.close());
  const other = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  const cases: readonly [readonly string[], string][] = [
    [[], 'usage:'],
    [[SANDBOX_ID, 'another'], 'usage:'],
    [[SANDBOX_ID, '--colour'], 'usage:'],
    [[SANDBOX_ID, '--url', 'ftp://broker'], 'no http:// or https:// address'],
    [[SANDBOX_ID, '--url', 'http://127.0.0.1:1'], 'no broker answers at http://127.0.0.1:1 '],
    [[SANDBOX_ID, '--url', other], 'is no broker: status 200'],
    [['../status', '--url', broker], 'invalid_request'],
  ];
  const ended = await Promise.all(cases.map(([args]) => why(args)));
  for (const [at, { code, stdout, stderr }] of ended.entries()) {
    expect([code, stdout], stderr).toEqual([1, '']);
    expect(stderr).toContain(cases[at]?.[1]);
    expect(stderr).not.toMatch(/^ +at /m);
  }
});
