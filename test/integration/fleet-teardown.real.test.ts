import { afterAll, beforeAll, expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import { acquired, answers, type Fleet, type Proxied, STOP, useFleets } from '../support/fleet.ts';

const { openFleet } = useFleets();
/** A stop hangs for longer than an acquire takes on a loaded machine. */
const PATIENT = { lease: { duration: '20s' }, runtime: { docker: { timeout: '15s' } } };

let fleet: Fleet;
let remover: Proxied;
let other: BrokerProcess;
beforeAll(async () => {
  fleet = await openFleet({ settings: { ...PATIENT, idle: { timeout: '1s', checkInterval: '200ms' } } });
  [remover, other] = await Promise.all([fleet.joinThroughProxy(), fleet.join()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

for (const kind of ['idle', 'explicit'] as const) {
  test(`[A-08] while the stop of a peer’s ${kind} teardown hangs, an acquire gets a new container without delay (real)`, async () => {
    const { replica, proxy } = remover;
    const first = await acquired(replica, person(kind));
    const old = await fleet.containerOf(first.id);
    const stop = proxy.fault(STOP, { kind: 'hold' });
    const asked = kind === 'idle' ? replica.api.release(first) : replica.api.destroy(first.id);
    await stop.reached;

    const { status, body } = await other.api.acquire(person(kind));
    expect(stop.held, 'what was to be stopped hangs as before').toBe(stop.hits);
    expect(status).toBe(201);
    expect(body).toMatchObject({ id: first.id, origin: 'created', holds: 1 });
    const fresh = await fleet.containerOf(first.id);
    expect(fresh).not.toBe(old);

    stop.lift();
    expect((await asked).status).toBeLessThan(300);
    await eventually(async () => String(await fleet.containersOf(first.id)) === fresh, 20_000);
    expect(await answers(body.url)).toBe(true);
  });
}
