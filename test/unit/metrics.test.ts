import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { sandboxId } from '../../src/domain/identity.ts';
import type { Fence } from '../../src/domain/ids.ts';
import { instrument } from '../../src/observability/instrument.ts';
import { createMetrics } from '../../src/observability/metrics.ts';

const readings = { tracked: () => 7, openTasks: () => 2, ready: () => true };

const sandbox = (user: number) => sandboxId({ deployment: 'd', profile: 'p', userId: `user ${user}`, threadId: 't' });
const ours = (body: string): string[] => body.split('\n').filter((line) => line.startsWith('sandbox_broker_'));

test('[H-09] series do not grow with users, threads or sandboxes, and carry no id', async () => {
  const metrics = createMetrics(readings);
  const lines: string[][] = [];
  for (let user = 0; user < 300; user += 1) {
    const about = { sandbox: sandbox(user), fence: user as Fence, container: null };
    metrics.observe({ type: 'acquired', origin: 'created', durationMs: 5, ...about });
    metrics.observe({ type: 'acquire-failed', code: 'sandbox_not_ready', message: 'm', durationMs: 5, ...about });
    metrics.observe({ type: 'removed', reason: 'idle', durationMs: 5, ...about });
    metrics.observe({ type: 'request', method: 'POST', route: '/v1/sandboxes', status: 201, durationMs: 5 });
    if (user === 0 || user === 299) lines.push(ours((await metrics.render()).body));
  }
  expect(lines[1]).toHaveLength(lines[0]!.length);
  expect(lines[1]!.join('\n')).not.toContain(sandbox(299));
  expect(lines[1]).toContain('sandbox_broker_removals_total{reason="idle",outcome="removed"} 300');
});

test('what a replica owns is told by state, what it believes to hold beside it', async () => {
  const metrics = createMetrics(readings);
  const owned = { starting: 1, active: 2, warm: 3, destroying: 4 };
  metrics.observe({ type: 'reconcile-pass', containers: 10, steps: 0, owned, durationMs: 12 });
  const { contentType, body } = await metrics.render();
  expect(contentType).toMatch(/^text\/plain/);
  expect(ours(body)).toEqual(
    expect.arrayContaining([
      'sandbox_broker_sandboxes_owned{state="warm"} 3',
      'sandbox_broker_leases_tracked 7',
      'sandbox_broker_background_tasks 2',
      'sandbox_broker_ready 1',
    ]),
  );
});

test('a port that is timed answers and fails as it did, and every call is told with its outcome', async () => {
  const told: string[] = [];
  class Port {
    readonly name = 'port';
    readonly #secret = 41;
    async add(to: number): Promise<number> {
      return this.#secret + to;
    }
    async fail(): Promise<never> {
      throw new BrokerError('store_unavailable', 'no');
    }
    async crash(): Promise<never> {
      throw new Error('no');
    }
  }
  const port = instrument(
    new Port(),
    () => 0,
    (call, outcome) => told.push(`${call} ${outcome}`),
  );
  expect(port.name).toBe('port');
  expect(await port.add(1)).toBe(42);
  await expect(port.fail()).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(port.crash()).rejects.toThrow('no');
  expect(told).toEqual(['add ok', 'fail store_unavailable', 'crash internal_error']);
});
