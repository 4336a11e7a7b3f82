import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { probe, type ReadinessLook, waitUntilReady } from '../../src/runtime/readiness.ts';
import { realClock } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';

const open: Server[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

interface Wait {
  readonly looks: (ReadinessLook | string)[];
  readonly deadlineMs?: number;
  readonly timeoutMs?: number;
}

/** Waits with these looks; the last one is repeated. Text is a url of a running container. */
async function wait({ looks, deadlineMs = 400, timeoutMs = 20_000 }: Wait) {
  const asked: number[] = [];
  const sentAt = performance.now();
  const outcome = await waitUntilReady({
    clock: realClock,
    profile: tinyProfile('i', { readiness: { path: '/v1/sandbox', timeoutMs } }),
    deadlineMs,
    container: 'c1',
    look: async () => {
      const next = looks[Math.min(asked.push(performance.now()), looks.length) - 1]!;
      return typeof next === 'string' ? { kind: 'running', url: next, probeUrl: next } : next;
    },
    describe: async () => 'last words',
  }).catch((error) => error);
  return { outcome, asked, tookMs: performance.now() - sentAt };
}

test('[A-09] a 200 from the path, with the container still there, is ready', async () => {
  const paths: unknown[] = [];
  const { url } = await serve((request, response) => {
    paths.push(request.url);
    response.end('{}');
  });
  const { outcome, asked } = await wait({ looks: [url] });
  expect(outcome).toBe(url);
  expect(paths).toEqual(['/v1/sandbox']);
  expect(asked).toHaveLength(2);
});

test('[A-09] redirects and other codes do not count; the last status is in the error', async () => {
  const { url: elsewhere } = await serve((_, response) => response.end('ok'));
  for (const status of [204, 302, 404, 503]) {
    const { url } = await serve((_, response) => response.writeHead(status, { location: elsewhere }).end());
    const { outcome } = await wait({ looks: [url], deadlineMs: 60 });
    expect(outcome).toMatchObject({ code: 'sandbox_not_ready' });
    expect(outcome.message).toContain(`the last status was ${status}`);
    expect(outcome.message).toContain('last words');
  }
});

test('[A-09] hanging, endless and header-only replies do not count, and the deadline holds', async () => {
  const replies: RequestListener[] = [
    () => undefined,
    (_, response) => response.writeHead(200, { 'content-length': '100' }).flushHeaders(),
    (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(1024)));
        response.once('drain', more);
      };
      more();
    },
    (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('x', () => response.destroy());
    },
  ];
  for (const reply of replies) {
    const { url } = await serve(reply);
    const { outcome, tookMs } = await wait({ looks: [url], deadlineMs: 300 });
    expect(outcome).toMatchObject({ code: 'sandbox_not_ready' });
    expect(tookMs).toBeLessThan(1_500);
  }
});

test('[A-09] a connection that is never answered, and a port where nobody is, do not count', async () => {
  const silent = createTcpServer((socket) => socket.resume().on('error', () => undefined));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const { outcome, tookMs } = await wait({ looks: [`http://127.0.0.1:${port}`], timeoutMs: 200, deadlineMs: 60_000 });
  expect(outcome).toMatchObject({ code: 'sandbox_not_ready' });
  expect(tookMs).toBeLessThan(1_500);
  await new Promise((resolve) => silent.close(resolve));
  const refused = await wait({ looks: [`http://127.0.0.1:${port}`], deadlineMs: 60 });
  expect(refused.outcome.message).toContain('ECONNREFUSED');
});

test('[A-09] a port answered by somebody else while our container is gone, or has moved, is not ready', async () => {
  const { url } = await serve((_, response) => response.end('ok'));
  const gone = await wait({ looks: [url, { kind: 'ended' }] });
  expect(gone.outcome).toMatchObject({ code: 'sandbox_start_failed' });
  expect(gone.outcome.message).toContain('last words');
  const moved = await wait({ looks: [url, 'http://127.0.0.1:1', url, 'http://127.0.0.1:1'], deadlineMs: 60 });
  expect(moved.outcome).toMatchObject({ code: 'sandbox_not_ready' });
  const unseen = await wait({ looks: [url, { kind: 'not-yet', because: 'engine silent' }], deadlineMs: 60 });
  expect(unseen.outcome.message).toContain('engine silent');
});

test('[R-07] an address that is not visible yet is waited for', async () => {
  const { url } = await serve((_, response) => response.end('ok'));
  const hidden: ReadinessLook = { kind: 'not-yet', because: 'no address' };
  expect((await wait({ looks: [hidden, hidden, url] })).outcome).toBe(url);
});

test('[A-09] no proxy variable is honoured', async () => {
  const asked: unknown[] = [];
  const { url: proxy } = await serve((request, response) => {
    asked.push(request.url);
    response.end('ok');
  });
  for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy']) vi.stubEnv(name, proxy);
  vi.stubEnv('NODE_USE_ENV_PROXY', '1');
  const { url } = await serve((_, response) => response.writeHead(503).end());
  expect(await probe(url, '/', 1_000)).toEqual({ status: 503, because: 'not a 200' });
  expect(asked).toEqual([]);
});

test('[A-18] each attempt has a connection of its own, and closes it', async () => {
  let opened = 0;
  const { url, server } = await serve((_, response) => response.writeHead(200).end('ok'));
  const closed: Promise<void>[] = [];
  server.on('connection', (socket) => {
    opened += 1;
    closed.push(new Promise((resolve) => socket.once('close', () => resolve())));
  });
  for (let attempt = 0; attempt < 5; attempt += 1) expect(await probe(url, '/', 1_000)).toBeNull();
  await Promise.all(closed);
  expect(opened).toBe(5);
});

test('[A-18] a sandbox that resets a connection it has answered on is not dead', async () => {
  const answered = new WeakSet<Socket>();
  const { url } = await serve(({ socket }, response) => {
    if (answered.has(socket)) socket.resetAndDestroy();
    else response.end('ok');
    answered.add(socket);
  });
  for (let attempt = 0; attempt < 5; attempt += 1) expect(await probe(url, '/', 1_000)).toBeNull();
});

test('[A-18] 2,000 sandboxes probed leave no growing set of sockets', async () => {
  let most = 0;
  const sockets = new Set<Socket>();
  const handles = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
  const before = handles();
  for (let round = 0; round < 100; round += 1) {
    // Each sandbox has an address of its own.
    const sandboxes = await Promise.all(Array.from({ length: 20 }, () => serve((_, response) => response.end('ok'))));
    for (const { server } of sandboxes) {
      server.on('connection', (socket) => {
        sockets.add(socket);
        most = Math.max(most, sockets.size);
        socket.on('close', () => sockets.delete(socket));
      });
    }
    expect(await Promise.all(sandboxes.map(({ url }) => probe(url, '/', 5_000)))).toEqual(Array(20).fill(null));
  }
  expect(most).toBeLessThanOrEqual(40);
  await vi.waitFor(() => expect(sockets.size).toBe(0), 10_000);
  expect(handles()).toBeLessThanOrEqual(before);
});

test('[A-09] it asks often at first, and then less and less', async () => {
  const { asked } = await wait({ looks: [{ kind: 'not-yet', because: '' }], deadlineMs: 1_000 });
  expect(asked.length).toBeGreaterThan(8);
  expect(asked.length).toBeLessThan(25);
});
