/**
 * npm run why -- <id>: what happened to a sandbox, and what its container said last, from any replica. The broker is at
 * --url or BROKER_URL (http://127.0.0.1:8080 without either); a key is taken from BROKER_API_KEY.
 */
import { parseArgs } from 'node:util';
import type { EventsBody, LogsBody, ProblemBody, SandboxBody } from '../src/http/schemas.ts';

const { positionals, values } = parseArgs({ allowPositionals: true, options: { url: { type: 'string' } } });
const [id] = positionals;
const url = (values.url ?? process.env.BROKER_URL ?? 'http://127.0.0.1:8080').replace(/\/$/, '');
const key = process.env.BROKER_API_KEY;

function fail(message: string): never {
  process.stderr.write(`why: ${message}\n`);
  process.exit(1);
}

if (id === undefined || positionals.length > 1)
  fail('usage: npm run why -- <id of a sandbox> [--url http://host:port]');

/** Null: nothing is known. */
async function get<T>(path: string): Promise<T | null> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const reply = await fetch(`${url}/v1/sandboxes/${id}${path}`, { headers }).catch((error: Error) =>
    fail(`no broker answers at ${url} (${String(error.cause ?? error)}); name one with --url or BROKER_URL`),
  );
  const body = (await reply.json()) as T & Partial<ProblemBody>;
  if (reply.ok) return body;
  if (body.code === 'sandbox_not_found') return null;
  if (body.code === 'unauthorized') return fail('the broker wants a key: set BROKER_API_KEY');
  return fail(`${body.code}: ${body.detail}`);
}

const events = await get<EventsBody>('/events');
if (events === null) fail(`nothing is known of sandbox ${id}: there is none, and what there was ended too long ago`);
const sandbox = await get<SandboxBody>('');
const logs = await get<LogsBody>('/logs');

const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`sandbox ${id}`);
if (sandbox === null) say('  there is none now');
else say(`  ${sandbox.state}, ${sandbox.holds} hold(s), owned by ${sandbox.owner}, ${sandbox.url ?? 'no url yet'}`);
say('');
for (const { at, event, owner, reason, key: asked, container } of events.items) {
  const details = [reason, asked === null ? null : `key ${asked}`, container?.slice(0, 12) ?? null];
  say(
    `${at}  ${event.padEnd(14)} ${details
      .filter((detail) => detail !== null)
      .join(', ')
      .padEnd(40)} ${owner}`,
  );
}
if (logs !== null) {
  say('');
  say(
    logs.running ? 'it runs; its last log lines:' : `it ended: ${logs.reason ?? 'nobody saw how'}; its last log lines:`,
  );
  say(logs.logTail === '' ? '  (none)' : logs.logTail.replace(/^/gm, '  '));
}
