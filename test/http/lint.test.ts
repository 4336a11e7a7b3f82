import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

test('[H-01] the published document keeps the rules of openapi/redocly.yaml', async () => {
  const cli = resolve(root, 'node_modules/@redocly/cli/bin/cli.js');
  const args = ['lint', '--config', 'openapi/redocly.yaml', '--format', 'json', 'openapi/openapi.json'];
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const stdout = await new Promise<string>((settle) => {
    execFile(process.execPath, [cli, ...args], { cwd: root, env }, (_error, output) => settle(output));
  });
  const { problems, totals } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    problems: { ruleId: string; message: string }[];
    totals: { errors: number; warnings: number };
  };
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  expect(totals).toMatchObject({ errors: 0, warnings: 0 });
}, 60_000);
