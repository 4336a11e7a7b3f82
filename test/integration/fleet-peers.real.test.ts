import { expect, test } from 'vitest';
import { person } from '../support/broker-client.ts';
import { acquired, answers, deeds, type Fleet, LEASE_MS, more, useFleets, watch } from '../support/fleet.ts';

const { openFleet } = useFleets();

/** A record without what a renewal changes. */
async function lasting(fleet: Fleet, id: string): Promise<Record<string, string>> {
  const { expiresAt: _, ...rest } = await fleet.record(id);
  return rest;
}

test('[S-02] `keep`: at its end all go on, and a peer has adopted them by its next pass; `destroy`: its own go, a peer’s stay (real)', async () => {
  // A lease that nobody waits for.
  await using fleet = await openFleet({
    settings: { lease: { duration: '30s' }, runtime: { docker: { timeout: '10s' } } },
  });
  const [keeper, destroyer, peer] = await Promise.all([
    fleet.join(),
    fleet.join({ shutdown: { sandboxes: 'destroy' } }),
    fleet.join(),
  ]);
  const held = await acquired(keeper, person('held'));
  const warm = await acquired(keeper, person('warm'));
  await keeper.api.release(warm);
  const own = await acquired(destroyer, person('own'));
  const passedOn = await acquired(destroyer, person('passed on'));
  await acquired(peer, person('passed on'));
  const foreign = await acquired(peer, person('foreign'));
  const kept = [held, warm, passedOn, foreign];
  const containers = await Promise.all(kept.map(({ id }) => fleet.containersOf(id)));
  const { holds } = await fleet.record(held.id);

  keeper.signal('SIGTERM');
  expect(await keeper.ended()).toMatchObject({ code: 0 });
  await more(peer, 'reconcile-pass', 2);
  expect(deeds(peer, destroyer).sort()).toEqual([`adopted ${held.id}`, `adopted ${warm.id}`].sort());
  expect(await fleet.record(held.id)).toMatchObject({ state: 'ready', holds });
  expect(await fleet.record(warm.id)).toMatchObject({ state: 'ready', holds: '' });
  expect((await peer.api.keepalive(held.id, held.holdId)).body).toMatchObject({ state: 'active', holds: 1 });

  destroyer.signal('SIGTERM');
  expect(await destroyer.ended()).toMatchObject({ code: 0 });
  expect(await fleet.containersOf(own.id)).toEqual([]);
  expect((await peer.api.get(own.id)).status).toBe(404);
  // What it had merely adopted is handed over.
  const taken = deeds(keeper, destroyer, peer).filter((deed) => !deed.startsWith('adopted'));
  expect(taken).toEqual([`claimed ${own.id}`, `removed ${own.id}`]);
  await more(peer, 'reconcile-pass', 2);
  const { owner } = (await peer.api.status()).body;
  for (const { id } of kept) expect(await fleet.record(id)).toMatchObject({ owner, state: 'ready' });
  expect(await Promise.all(kept.map(({ id }) => fleet.containersOf(id)))).toEqual(containers);
  expect(await Promise.all(kept.map(({ url }) => answers(url)))).toEqual([true, true, true, true]);
});

test('[S-03] without its Redis it listens, is not ready, says why, and becomes ready by itself (real)', async () => {
  await using fleet = await openFleet();
  await fleet.redis.stop();
  const replica = await fleet.launch();
  await more(replica, 'loop-failed', 1, ({ loop }) => loop === 'reconcile');
  const { status, body } = await replica.api.readyz();
  expect(status).toBe(503);
  expect(body).toMatchObject({ ready: false, dependencies: { store: { ok: false }, engine: { ok: true } } });
  expect(body.because).toMatch(/the first reconcile is not done.*store/i);
  expect((await replica.api.healthz()).status).toBe(200);
  expect((await replica.api.acquire(person('early'))).body.code).toBe('store_unavailable');
  expect(await fleet.containers()).toEqual([]);

  await fleet.redis.start();
  await replica.logged(({ event, ready }) => event === 'readiness' && ready === true);
  expect((await replica.api.readyz()).status).toBe(200);
  expect(await answers((await acquired(replica, person('early'))).url)).toBe(true);
});

test('[T-03] `idle.timeout: 0`: nothing is reaped, renewal goes on, and no peer adopts (real)', async () => {
  const settings = {
    idle: { timeout: '0s' },
    holds: { ttl: '4s' },
    acquire: { startTimeout: '4s' },
    profiles: { default: { readiness: { timeout: '4s' } } },
  };
  await using fleet = await openFleet({ settings });
  const [a, b] = await Promise.all([fleet.join(), fleet.join()]);
  const left = await acquired(a, person('left'));
  const silent = await acquired(a, person('silent'));
  const warm = (await a.api.release(left)).body;
  expect(warm).toMatchObject({ state: 'warm', warmUntil: null });
  const done = deeds(a, b);
  await Promise.all([watch(b, 4_000 + LEASE_MS / 2), more(a, 'renewal-pass', 7, ({ renewed }) => renewed === 2)]);
  expect(deeds(a, b)).toEqual(done);
  expect((await b.api.get(left.id)).body).toEqual(warm);
  expect((await b.api.get(silent.id)).body).toMatchObject({ state: 'warm', warmUntil: null, owner: warm.owner });
  expect(await Promise.all([left, silent].map(({ url }) => answers(url)))).toEqual([true, true]);
});

test('[T-19] a fresh replica, with a far shorter idle time, changes nothing of a working one’s: at its start, in a pass, at its end (real)', async () => {
  await using fleet = await openFleet({ settings: { idle: { timeout: '1h' } } });
  const a = await fleet.join();
  const held = await acquired(a, person('held'));
  const warm = await acquired(a, person('warm'));
  await a.api.release(warm);
  const both = [held.id, warm.id];
  const look = async () => ({
    records: await Promise.all(both.map((id) => lasting(fleet, id))),
    containers: (await fleet.containers()).sort((one, other) => one.id.localeCompare(other.id)),
  });
  const before = await look();
  const done = deeds(a);
  expect(before.containers.length).toBe(2);

  const fresh = await Promise.all(
    ['keep', 'destroy'].map((sandboxes) => fleet.join({ idle: { timeout: '100ms' }, shutdown: { sandboxes } })),
  );
  expect(await look()).toEqual(before);
  await Promise.all(fresh.map((replica) => watch(replica, LEASE_MS + 1_000)));
  expect(await look()).toEqual(before);
  for (const replica of fresh) {
    replica.signal('SIGTERM');
    expect(await replica.ended()).toMatchObject({ code: 0 });
    await more(a, 'renewal-pass', 2, ({ renewed }) => renewed === 2);
    expect(await look()).toEqual(before);
  }
  expect(deeds(a, ...fresh)).toEqual(done);
  expect(await Promise.all([held, warm].map(({ url }) => answers(url)))).toEqual([true, true]);
});
