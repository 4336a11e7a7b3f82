import { type Acquired, MeasuredServer } from './process.ts';
import { markdown, say, spread } from './report.ts';
import { newDeployment } from './settings.ts';

const COUNT = 200;
const AT_ONCE = 8;
const LIMIT_MS = 120_000;

/** So many real containers at once: acquired, held, reconciled by a replica that starts anew, and reaped. */
export async function twoHundred(): Promise<string> {
  const deployment = newDeployment();
  const handouts: Acquired[] = [];
  const times: number[] = [];
  let acquiredMs: number;
  {
    await using server = await MeasuredServer.start({ deployment }, AT_ONCE);
    const began = performance.now();
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let n = next++; n < COUNT; n = next++) {
        const at = performance.now();
        handouts.push(await server.acquire(`user ${n}`));
        times.push(performance.now() - at);
        if (handouts.length % 50 === 0) say(`${handouts.length} of ${COUNT} acquired`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    acquiredMs = performance.now() - began;
  }
  const restarted = performance.now();
  await using server = await MeasuredServer.start({ deployment, idleTimeout: '2s' }, AT_ONCE);
  await until(async () => (await metric(server, 'sandbox_broker_leases_tracked')) >= COUNT);
  const reconciledMs = performance.now() - restarted;
  say(`${COUNT} adopted`);
  const answering = (await Promise.all(handouts.map(({ url }) => answers(url)))).filter(Boolean).length;
  if (answering !== COUNT) throw new Error(`${answering} of ${COUNT} urls answer after the restart`);
  const asked = performance.now();
  for (const handout of handouts) await server.release(handout);
  const releasedMs = performance.now() - asked;
  await until(async () => (await used(server)) === 0);
  const reapedMs = performance.now() - asked;
  return markdown(
    ['with 200 real containers', ''],
    [
      [
        `acquired, ${AT_ONCE} callers at a time`,
        `${(acquiredMs / 1000).toFixed(1)} s in all, ${spread(times, 0)} ms each`,
      ],
      ['a new process: ready, all adopted', `${(reconciledMs / 1000).toFixed(1)} s`],
      ['urls that answer after it', `${answering} of ${COUNT}`],
      ['released, one after the other', `${(releasedMs / 1000).toFixed(1)} s`],
      ['all reaped, idle for 2 s', `${(reapedMs / 1000).toFixed(1)} s after the first release`],
    ],
  );
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + LIMIT_MS;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${LIMIT_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function used(server: MeasuredServer): Promise<number> {
  const { body } = await server.call<{ capacity: { used: number } }>('GET', '/v1/status');
  return body.capacity.used;
}

async function metric(server: MeasuredServer, name: string): Promise<number> {
  const reply = await server.broker.request({ method: 'GET', path: '/metrics' });
  const line = (await reply.body.text()).split('\n').find((text) => text.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? 0);
}

async function answers(url: string): Promise<boolean> {
  const reply = await fetch(`${url}/v1/sandbox`).catch(() => null);
  await reply?.arrayBuffer();
  return reply?.status === 200;
}
