import { readdir, readlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { probe } from '../../src/runtime/readiness.ts';
import { eventually } from '../support/docker.ts';

const AT_ONCE = 50;

/** How many sockets this process has open. */
async function sockets(): Promise<number> {
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

test('[A-18] 2,000 probes leave no growing set of sockets, whatever is answered', async () => {
  const endings = ['ok', 'refused', 'cut', 'unread'] as const;
  let asked = 0;
  const server = createServer((_, response) => {
    const ending = endings[asked++ % endings.length];
    if (ending === 'cut') response.destroy();
    else if (ending === 'unread') response.writeHead(500).end('x'.repeat(100_000));
    else response.writeHead(ending === 'ok' ? 200 : 503).end('{}');
  });
  const open = new Set<Socket>();
  let most = 0;
  server.on('connection', (socket) => {
    open.add(socket);
    most = Math.max(most, open.size);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const before = await sockets();
  try {
    let ready = 0;
    for (let round = 0; round < 2_000 / AT_ONCE; round += 1) {
      const replies = await Promise.all(Array.from({ length: AT_ONCE }, () => probe(url, '/', 10_000)));
      ready += replies.filter((reply) => reply === null).length;
    }
    expect(asked).toBe(2_000);
    expect(ready).toBe(500);
    expect(most).toBeLessThanOrEqual(2 * AT_ONCE);
    await eventually(async () => open.size === 0);
    await eventually(async () => (await sockets()) <= before);
  } finally {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});
