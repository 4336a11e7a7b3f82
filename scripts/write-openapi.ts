import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { buildApp } from '../src/http/app.ts';
import { documentText } from '../src/http/docs.ts';
import type { SandboxService } from '../src/service/api.ts';

/** Writes openapi/openapi.json from the routes. Nothing is started: no route is ever called. */
const folder = join(import.meta.dirname, '..');
const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };

const app = buildApp({
  service: {} as SandboxService,
  auth: { keys: [] },
  logger: pino({ level: 'silent' }),
  emit: () => {},
  metrics: { render: () => Promise.reject(new Error('not here')) },
  version,
  newId: () => 'none',
  draining: () => false,
});
await app.ready();
await mkdir(join(folder, 'openapi'), { recursive: true });
await writeFile(join(folder, 'openapi/openapi.json'), documentText(app));
await app.close();
