import { expect, test, vi } from 'vitest';
import type { ReadinessView } from '../../src/service/api.ts';
import { READY } from '../fakes/fake-service.ts';
import { openApp } from './harness.ts';

/** Of a look that hangs nothing would be told at all. */
const PROBE_PATIENCE_MS = 4_000;
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 10_000, interval: 10 });
const NO_ENGINE: ReadinessView = {
  ...READY,
  dependencies: { ...READY.dependencies, engine: { ok: false, message: 'no answer' } },
};

/** A service whose looks the test ends one by one, in order. */
function looks() {
  const h = openApp();
  const open: PromiseWithResolvers<ReadinessView>[] = [];
  let begun = 0;
  h.service.readiness = () => {
    begun += 1;
    const look = Promise.withResolvers<ReadinessView>();
    open.push(look);
    return look.promise;
  };
  const probe = async () => {
    const sentAt = performance.now();
    const answer = await h.app.inject('/readyz');
    return { status: answer.statusCode, body: answer.json(), ms: performance.now() - sentAt };
  };
  return { h, open, probe, begun: () => begun };
}

test('[H-06] while a dependency hangs, readiness is told in time for any probe, as it was last known', async () => {
  const { open, probe, begun } = looks();
  const first = probe();
  await until(() => expect(open).toHaveLength(1));
  open.shift()?.resolve(READY);
  expect(await first).toMatchObject({ status: 200, body: READY });

  const late = await Promise.all([probe(), probe()]);
  for (const { status, body, ms } of late) {
    expect([status, body]).toEqual([200, READY]);
    expect(ms).toBeLessThan(PROBE_PATIENCE_MS);
  }
  open.shift()?.resolve(NO_ENGINE);
  await until(async () => expect((await probe()).body).toEqual(NO_ENGINE));
  expect(begun()).toBeGreaterThan(2);
});

test('[H-06] any number of probes at once are one look at the dependencies', async () => {
  const { open, probe, begun } = looks();
  const answers = Array.from({ length: 50 }, probe);
  await until(() => expect(open).toHaveLength(1));
  open[0]?.resolve(READY);
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
  expect(begun()).toBe(1);
});

test('[H-06] a look that fails is told to those who wait for it, and to nobody else', async () => {
  const { h, open, probe } = looks();
  const failing = probe();
  await until(() => expect(open).toHaveLength(1));
  open.shift()?.reject(new Error('SECRET'));
  expect(await failing).toMatchObject({ status: 500, body: { code: 'internal_error' } });
  const known = probe();
  await until(() => expect(open).toHaveLength(1));
  open.shift()?.resolve(READY);
  await known;
  expect((await probe()).status).toBe(200);
  open.shift()?.reject(new Error('SECRET'));
  await until(async () => expect(h.lines.filter(({ level }) => Number(level) >= 50)).toHaveLength(1));
});
