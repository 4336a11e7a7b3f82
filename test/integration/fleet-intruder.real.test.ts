import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { acquired, more, useFleets } from '../support/fleet.ts';

const { openFleet } = useFleets();

test("[R-17] [T-02] a broker started by mistake with the fleet's deployment and leases in memory leaves all as it is (real)", async () => {
  await using fleet = await openFleet();
  const member = await fleet.join();
  const held = await acquired(member, person('held'));
  const containers = await fleet.containers();

  const intruder = await fleet.launch({
    store: { type: 'memory', url: null },
    idle: { timeout: '1s' },
    shutdown: { sandboxes: 'destroy' },
  });
  await intruder.logged(({ event }) => event === 'leases-not-shared');
  const { status, body } = await intruder.api.readyz();
  expect(status).toBe(503);
  expect(body.dependencies?.engine.message).toMatch(/Set store\.url .* remove the volume sandbox-broker-shared-/);
  for (const who of [person('held'), person('new')]) {
    expect((await intruder.api.acquire(who)).body).toMatchObject({ status: 503, code: 'runtime_unavailable' });
  }
  expect((await intruder.api.list()).body).toMatchObject({ items: [] });
  await more(intruder, 'leases-not-shared', 2);
  intruder.signal('SIGTERM');
  expect((await intruder.ended()).code).toBe(0);
  expect(intruder.events('adopted')).toEqual([]);
  expect(await fleet.containers()).toEqual(containers);
  expect((await acquired(member, person('held'))).url).toBe(held.url);
});
