/**
 * npm run why -- <id>: what happened to a sandbox, and what its container said last, from any replica. The broker is at
 * --url or BROKER_URL (http://127.0.0.1:8080 without either); a key is taken from BROKER_API_KEY.
 */
import { parseArgs } from 'node:util';
import type { EventsBody, LogsBody, ProblemBody, SandboxBody } from '../src/http/schemas.ts';

const USAGE = 'usage: npm run why -- <id of a sandbox> [--url http://host:port]';
const DEADLINE_MS = 30_000;

function fail(message: string): never {
  process.stderr.write(`why: ${message}\n`);
  process.exit(1);
}

function readArguments() {
  try {
    return parseArgs({ allowPositionals: true, options: { url: { type: 'string' } } });
  } catch (error) {
    return fail(`${(error as Error).message}\n${USAGE}`);
  }
}

const { positionals, values } = readArguments();
const [id] = positionals;
if (id === undefined || positionals.length > 1) fail(USAGE);
const url = (values.url ?? process.env.BROKER_URL ?? 'http://127.0.0.1:8080').replace(/\/+$/, '');
if (!URL.canParse(url) || !/^https?:/.test(url)) fail(`"${url}" is no http:// or https:// address`);
const key = process.env.BROKER_API_KEY;

type Answer<T> = { readonly body: T } | { readonly problem: Pick<ProblemBody, 'code' | 'detail'> };

/** Ends the program where no broker answers, or not to this caller. */
async function get<T extends object>(path: string): Promise<Answer<T>> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const request = `${url}/v1/sandboxes/${encodeURIComponent(id ?? '')}${path}`;
  const reply = await fetch(request, { headers, signal }).catch((error: Error) =>
    fail(`no broker answers at ${url} (${String(error.cause ?? error)}); name one with --url or BROKER_URL`),
  );
  const body = (await reply.json().catch(() => null)) as (T & Partial<ProblemBody>) | null;
  if (reply.ok && body !== null) return { body };
  const { code, detail } = body ?? {};
  if (code === undefined || detail === undefined)
    return fail(`what answers at ${url} is no broker: status ${reply.status}, and not a broker's body`);
  if (code === 'unauthorized') return fail(`${detail} The key is taken from BROKER_API_KEY.`);
  return { problem: { code, detail } };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const told = (parts: readonly (string | null)[]): string => parts.filter((part) => part !== null).join(', ');

const events = await get<EventsBody>('/events');
if ('problem' in events) {
  const { code, detail } = events.problem;
  fail(code === 'sandbox_not_found' ? detail : `${code}: ${detail}`);
}
const [sandbox, logs] = await Promise.all([get<SandboxBody>(''), get<LogsBody>('/logs')]);

say(`sandbox ${id}`);
if ('body' in sandbox) {
  const { state, holds, owner, url: where } = sandbox.body;
  say(`  ${state}, ${holds} hold(s), owned by ${owner}, ${where ?? 'no url yet'}`);
} else say(`  ${sandbox.problem.detail}`);

say('');
for (const { at, event, owner, reason, key: asked, container } of events.body.items) {
  const details = told([reason, asked === null ? null : `key ${asked}`, container?.slice(0, 12) ?? null]);
  say(`${at}  ${event.padEnd(14)} ${details.padEnd(40)} ${owner}`);
}

say('');
if ('problem' in logs) say(`no log lines: ${logs.problem.detail}`);
else {
  const { running, reason, logTail } = logs.body;
  say(running ? 'it runs; its last log lines:' : `it ended: ${reason ?? 'nobody saw how'}; its last log lines:`);
  say(logTail === '' ? '  (none)' : logTail.replace(/^/gm, '  '));
}
