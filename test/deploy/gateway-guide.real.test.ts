import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BrokerClient } from '../support/broker-client.ts';
import { type BrokerProcess, useBrokers } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';

const guide = resolve(import.meta.dirname, '../../docs/gateway-guide.md');
const KEY = 'KEY-of-the-guide';
const COMMAND = 'sleep 2; echo hello from $((6 * 7))';
const { readyBroker } = useBrokers();

interface Program {
  readonly language: string;
  readonly runner: string;
}
const PROGRAMS: readonly Program[] = [
  { language: 'sh', runner: 'bash' },
  { language: 'ts', runner: process.execPath },
  { language: 'python', runner: 'python3' },
];

let broker: BrokerProcess;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'guide-'));
  const page = await readFile(guide, 'utf8');
  for (const { language } of PROGRAMS) {
    const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))];
    expect(blocks, language).toHaveLength(1);
    await writeFile(join(folder, `turn.${language}`), String(blocks[0]?.[1]));
  }
  const auth = { keys: [{ name: 'guide', key: KEY }] };
  broker = await readyBroker({ overrides: { auth } });
});
afterAll(async () => {
  await broker?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const PROBLEM = { detail: 'As the test wants it.', requestId: 'r' };
const SCRIPT: Readonly<Record<string, readonly { status: number; body: object }[]>> = {
  acquire: [
    { status: 503, body: { code: 'shutting_down', ...PROBLEM } },
    { status: 202, body: { id: 'x', url: null, state: 'starting' } },
  ],
  keepalive: [{ status: 409, body: { code: 'hold_lost', ...PROBLEM } }],
};

/** Stands before the broker: a replica that shuts down, a start that takes its time, a container that is lost; else the broker. */
class Front implements AsyncDisposable {
  /** What was asked and with which status it was answered, in order. */
  readonly seen: string[] = [];
  readonly #server: Server;
  #left = Object.fromEntries(Object.entries(SCRIPT).map(([name, answers]) => [name, [...answers]]));

  /** `changes` are laid over what the broker answers. */
  constructor(target: string, changes: object | null = null) {
    if (changes !== null) this.#left = {};
    this.#server = createServer(async (request, response) => {
      const name = /\/(keepalive|release)$/.exec(request.url ?? '')?.[1] ?? 'acquire';
      const body = await text(request);
      const scripted = this.#left[name]?.shift();
      if (scripted !== undefined) {
        const retry = scripted.status === 409 ? {} : { 'retry-after': '1' };
        response.writeHead(scripted.status, { 'content-type': 'application/json', ...retry });
        response.end(JSON.stringify(scripted.body));
        this.seen.push(`${name} ${scripted.status}`);
        return;
      }
      const { authorization = '' } = request.headers;
      const headers = { authorization, 'content-type': 'application/json' };
      const answer = await fetch(`${target}${request.url}`, { method: 'POST', headers, body });
      this.seen.push(`${name} ${answer.status}`);
      const type = answer.headers.get('content-type') ?? '';
      const said = JSON.stringify({ ...((await answer.json()) as object), ...changes });
      response.writeHead(answer.status, { 'content-type': type }).end(said);
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((settle) => this.#server.listen(0, '127.0.0.1', settle));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((settle) => this.#server.close(settle));
  }
}

/** Stands for a sandbox that lives, and refuses whatever it is asked. */
class Refusing implements AsyncDisposable {
  asked = 0;
  readonly #server = createServer((_request, response) => {
    this.asked += 1;
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error": "no"}');
  });

  async listen(): Promise<string> {
    await new Promise<void>((settle) => this.#server.listen(0, '127.0.0.1', settle));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((settle) => this.#server.close(settle));
  }
}

interface Run {
  readonly url: string;
  readonly key: string;
  readonly user?: string;
  readonly command?: string;
  readonly keepaliveSeconds?: number;
}

function run({ language, runner }: Program, { url, key, user, command = COMMAND, keepaliveSeconds = 1 }: Run) {
  const about = { BROKER_URL: url, BROKER_API_KEY: key, KEEPALIVE_SECONDS: String(keepaliveSeconds) };
  const env = { ...process.env, NODE_OPTIONS: '', ...about };
  const args = [join(folder, `turn.${language}`), user ?? `user-${language}`, command];
  return new Promise<{ code: number; stdout: string; stderr: string }>((settle) => {
    execFile(runner, args, { env, timeout: 50_000 }, (error, stdout, stderr) => {
      settle({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

test.concurrent.each(PROGRAMS)(
  '[A-02] the $language program of docs/gateway-guide.md waits, asks again, keeps its hold, begins anew, and releases (real)',
  async (program) => {
    await using front = new Front(broker.api.url);
    const { code, stdout, stderr } = await run(program, { url: await front.listen(), key: KEY });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.trim().replace(/\\n$/, '')).toBe('hello from 42');
    const calls = front.seen.filter((call) => !call.startsWith('release'));
    expect(calls.slice(0, 6)).toEqual([
      ...['acquire 503', 'acquire 202', 'acquire 201', 'keepalive 409'],
      ...['acquire 200', 'keepalive 200'],
    ]);
    expect(front.seen.at(-1)).toBe('release 200');
    await using api = new BrokerClient(broker.api.url, KEY);
    const { items } = (await api.list({ userId: `user-${program.language}` })).body;
    expect(items).toMatchObject([{ state: 'warm', holds: 0 }]);
  },
);

test.concurrent.each(PROGRAMS)('[H-05] the $language program says so when its key is wrong (real)', async (program) => {
  const { code, stdout, stderr } = await run(program, { url: broker.api.url, key: 'KEY-wrong' });
  expect(code).toBeGreaterThan(0);
  expect([stdout, stderr]).toEqual(['', expect.stringContaining('unauthorized')]);
});

const ENDS: Readonly<Record<string, (api: BrokerClient, id: string) => Promise<unknown>>> = {
  'is killed': (_api, id) => dockerClient().getContainer(`${broker.deployment}-${id}`).kill(),
  'is destroyed': (api, id) => api.destroy(id),
};

/** Ends the sandbox of a user while it works, once; resolves when that is done. */
async function end(user: string, how: string): Promise<void> {
  await using api = new BrokerClient(broker.api.url, KEY);
  let id = '';
  await eventually(async () => {
    const [sandbox] = (await api.list({ userId: user })).body.items;
    id = sandbox?.id ?? '';
    return sandbox?.state === 'active';
  });
  await ENDS[how]?.(api, id);
}

test.concurrent.each(PROGRAMS.flatMap((program) => Object.keys(ENDS).map((how) => ({ ...program, how }))))(
  '[A-06] the $language program begins anew when its sandbox $how in the middle of its work (real)',
  async ({ how, ...program }) => {
    const user = `user-${program.language} whose sandbox ${how}`;
    const command = 'sleep 3; echo done';
    const keepaliveSeconds = 60;
    const told = run(program, { url: broker.api.url, key: KEY, user, command, keepaliveSeconds });
    await end(user, how);
    const { code, stdout, stderr } = await told;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.trim().replace(/\\n$/, '')).toBe('done');
    await using api = new BrokerClient(broker.api.url, KEY);
    expect((await api.list({ userId: user })).body.items).toMatchObject([{ state: 'warm', holds: 0 }]);
  },
);

test.concurrent.each(PROGRAMS)(
  '[A-06] what a sandbox that lives refuses is told by the $language program, and not tried again (real)',
  async (program) => {
    await using api = new BrokerClient(broker.api.url, KEY);
    const who = { userId: `user-${program.language} refused`, threadId: '1' };
    await using refusing = new Refusing();
    await using front = new Front(broker.api.url, { url: await refusing.listen() });
    const told = await run(program, { url: await front.listen(), key: KEY, user: who.userId });
    expect(told.code).toBeGreaterThan(0);
    expect(told.stderr).not.toMatch(/lost/);
    expect(refusing.asked).toBe(1);
    expect((await api.list({ userId: who.userId })).body.items).toMatchObject([{ state: 'warm', holds: 0 }]);
  },
);
