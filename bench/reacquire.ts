import { asOwnerId, asSandboxId, type HoldId } from '../src/domain/ids.ts';
import { type Acquired, MeasuredServer } from './process.ts';
import { median, quantile, type Row, say, spread } from './report.ts';
import { newDeployment } from './settings.ts';

const SANDBOXES = 40;
const CONNECTIONS = 8;
const ROUNDS = 60;
const BATCHES = 8;
const WARM_UP_ROUNDS = 10;

interface Round {
  readonly perSecond: number;
  readonly latencies: readonly number[];
}

/** Batches of one call for each sandbox, a fixed number at a time. What is done between the batches is not measured. */
async function round(call: (n: number) => Promise<void>, between: () => Promise<unknown>): Promise<Round> {
  const latencies: number[] = [];
  let busy = 0;
  for (let batch = 0; batch < BATCHES; batch += 1) {
    let next = 0;
    const began = performance.now();
    const worker = async (): Promise<void> => {
      for (let n = next++; n < SANDBOXES; n = next++) {
        const at = performance.now();
        await call(n);
        latencies.push(performance.now() - at);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    busy += performance.now() - began;
    await between();
  }
  return { perSecond: (BATCHES * SANDBOXES * 1000) / busy, latencies };
}

/**
 * Re-acquires of ready sandboxes, in rounds that take turns with rounds of the floor. Each handout is released after its
 * batch, outside the measure.
 */
export async function reacquire(): Promise<readonly Row[]> {
  await using server = await MeasuredServer.start({ deployment: newDeployment() }, CONNECTIONS);
  const sandboxes: Acquired[] = [];
  for (let n = 0; n < SANDBOXES; n += 1) sandboxes.push(await server.acquire(`user ${n}`));
  const [first] = sandboxes;
  const { body } = await server.call<Record<string, string>>('GET', `/v1/sandboxes/${first!.id}`);
  await server.answerWith({
    kind: 'ready',
    hold: Number(first!.holdId) as HoldId,
    origin: 'reused',
    previous: null,
    sandbox: {
      id: asSandboxId(first!.id),
      profile: 'default',
      userId: 'user 0',
      threadId: 'bench',
      url: first!.url,
      state: 'active',
      holds: 1,
      owner: asOwnerId(body.owner ?? ''),
      createdAt: Date.now(),
      lastActiveAt: Date.now(),
      warmUntil: null,
    },
  });
  const ours: Round[] = [];
  const floor: Round[] = [];
  for (let n = 0; n < WARM_UP_ROUNDS + ROUNDS; n += 1) {
    let handouts: Acquired[] = [];
    const one = await round(
      async (call) => void handouts.push(await server.acquire(`user ${call}`)),
      async () => {
        await Promise.all(handouts.map((handout) => server.release(handout)));
        handouts = [];
      },
    );
    const request = { userId: 'user 0', threadId: 'bench' };
    const ask = async (): Promise<void> => {
      await server.call('POST', '/v1/sandboxes', request, server.floor);
    };
    const other = await round(ask, async () => undefined);
    if (n >= WARM_UP_ROUNDS) {
      ours.push(one);
      floor.push(other);
    }
    if (n % 10 === 9) say(`re-acquire: ${n + 1} of ${WARM_UP_ROUNDS + ROUNDS} rounds`);
  }
  for (const { id } of sandboxes) await server.destroy(id);
  const rates = (rounds: readonly Round[]): number[] => rounds.map(({ perSecond }) => perSecond);
  const slow = (rounds: readonly Round[]): number[] => rounds.map(({ latencies }) => quantile(latencies, 0.99));
  return [
    {
      what: 're-acquire, throughput',
      measured: `${spread(rates(ours), 0)} /s`,
      against: `${spread(rates(floor), 0)} /s`,
      value: median(rates(ours)) / median(rates(floor)),
      goal: { at: 'least', value: 0.7 },
      unit: 'x',
    },
    {
      what: 're-acquire, p99',
      measured: `${spread(slow(ours), 2)} ms`,
      against: `${spread(slow(floor), 2)} ms`,
      value: median(slow(ours)) / median(slow(floor)),
      goal: { at: 'most', value: 2 },
      unit: 'x',
    },
  ];
}
