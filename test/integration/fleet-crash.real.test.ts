import { expect, test } from 'vitest';
import { type Person, person } from '../support/broker-client.ts';
import { eventually } from '../support/docker.ts';
import {
  acquired,
  answers,
  CREATE,
  deeds,
  LEASE_MS,
  RENAME,
  SLACK_MS,
  START,
  timeOf,
  useFleets,
  watch,
} from '../support/fleet.ts';

const { openFleet } = useFleets();

/** No container call that a test holds is given up before it kills whoever waits for it. */
const PATIENT = { lease: { duration: '5s' }, runtime: { docker: { timeout: '4500ms' } } };

test('[A-13] the replica that starts it is killed, at whatever point: the next acquire gets one that works (real)', async () => {
  await using fleet = await openFleet({ settings: PATIENT });
  const [a, b] = await Promise.all([fleet.joinThroughProxy(), fleet.join()]);
  const cut: Promise<unknown>[] = [];
  const ask = (who: Person): void => void cut.push(expect(a.replica.api.acquire(who)).rejects.toThrow());

  const running = person('runs, and is not activated');
  const started = a.proxy.fault(START, { kind: 'hold' }, 1);
  ask(running);
  await started.reached;
  const found = await fleet.containerOf(fleet.idOf(running));
  const looked = a.proxy.fault(new RegExp(`^GET /containers/json.*${found}`), { kind: 'hold' });
  started.lift();
  await looked.reached;

  const made = person('is made, and does not run');
  const start = a.proxy.fault(START, { kind: 'hold' });
  ask(made);
  await start.reached;
  const missing = person('is not made');
  const create = a.proxy.fault(CREATE, { kind: 'hold' });
  ask(missing);
  await create.reached;
  a.replica.signal('SIGKILL');
  await Promise.all(cut);

  const people = [running, made, missing];
  const got = await Promise.all(people.map((who) => b.api.acquire(who)));
  expect(got.map(({ status }) => status)).toEqual([200, 201, 201]);
  expect(got[0]!.body.origin).toBe('discovered');
  for (const { body } of got) {
    expect(await answers(body.url)).toBe(true);
    const container = await fleet.containerOf(body.id);
    await eventually(async () => String(await fleet.containersOf(body.id)) === container);
  }
  expect(await fleet.containersOf(got[0]!.body.id)).toEqual([found]);
});

test('[T-07] an owner is killed: a peer adopts in time, holds and idle clock stay, the unheld one is reaped on time (real)', async () => {
  await using fleet = await openFleet({ settings: { idle: { timeout: '7s' } } });
  const [a, b] = await Promise.all([fleet.join(), fleet.join()]);
  const held = await acquired(a, person('held'));
  const left = await acquired(a, person('left'));
  const container = await fleet.containerOf(held.id);
  const warm = (await a.api.release(left)).body;
  const { holds } = await fleet.record(held.id);
  a.signal('SIGKILL');
  const killedAt = Date.now();

  for (const { id } of [held, left]) {
    const adopted = await b.logged(({ event, sandbox }) => event === 'adopted' && sandbox === id);
    expect(timeOf(adopted) - killedAt).toBeLessThan(LEASE_MS + 500 + SLACK_MS);
  }
  const { owner } = (await b.api.status()).body;
  expect(await fleet.record(held.id)).toMatchObject({ owner, holds });
  expect((await b.api.get(held.id)).body).toMatchObject({ owner, state: 'active', holds: 1, url: held.url });
  expect((await b.api.get(left.id)).body).toEqual({ ...warm, owner });
  expect((await b.api.keepalive(held.id, held.holdId)).body.holds).toBe(1);

  const reaped = timeOf(await b.logged(({ event, sandbox }) => event === 'claimed' && sandbox === left.id));
  expect(reaped).toBeGreaterThanOrEqual(Date.parse(warm.warmUntil!));
  expect(reaped).toBeLessThan(Date.parse(warm.warmUntil!) + SLACK_MS);
  await eventually(async () => (await fleet.containersOf(left.id)).length === 0);
  expect(await fleet.containersOf(held.id)).toEqual([container]);
  expect(await answers(held.url)).toBe(true);
});

test('[T-08] an owner that was frozen past its lease wakes after a peer took over, and touches nothing of it (real)', async () => {
  await using fleet = await openFleet();
  // What it remembers would be idle when it wakes.
  const [a, b] = await Promise.all([fleet.joinThroughProxy({ idle: { timeout: '1500ms' } }), fleet.join()]);
  const { api } = a.replica;
  const [held, left, dying] = await Promise.all(
    ['held', 'left', 'dying'].map((who) => acquired(a.replica, person(who))),
  );
  const kept = await Promise.all([held!, left!].map(({ id }) => fleet.containerOf(id)));
  const old = await fleet.containerOf(dying!.id);
  const rename = a.proxy.fault(RENAME, { kind: 'hold' });
  const destroyed = api.destroy(dying!.id).catch(() => undefined);
  await rename.reached;
  await api.release(left!);
  a.replica.signal('SIGSTOP');
  const done = deeds(a.replica).length;

  // In use until it is known that the peer, which reaps nothing, has it.
  const taken = await acquired(b, person('left'));
  await b.api.release(taken);
  await b.logged(({ event, sandbox }) => event === 'adopted' && sandbox === held!.id);
  await b.logged(({ event, container }) => event === 'removed' && container === old);
  const anew = await acquired(b, person('dying'));
  expect(anew.origin).toBe('created');
  await watch(b, 500);
  rename.lift();
  a.replica.signal('SIGCONT');
  await destroyed;
  await watch(a.replica, 2_000);

  const owner = (await b.api.status()).body.owner;
  for (const { id } of [held!, left!, dying!]) expect((await fleet.record(id)).owner).toBe(owner);
  expect(
    deeds(a.replica)
      .slice(done)
      .filter((deed) => !deed.startsWith('removal-stopped')),
  ).toEqual([]);
  for (const [n, { id }] of [held!, left!].entries()) expect(await fleet.containersOf(id)).toEqual([kept[n]]);
  expect(await fleet.containersOf(anew.id)).toEqual([await fleet.containerOf(anew.id)]);
  for (const { url } of [held!, left!, anew]) expect(await answers(url)).toBe(true);
  expect((await b.api.keepalive(held!.id, held!.holdId)).body).toMatchObject({ state: 'active', holds: 1 });
});

test('[T-10] a teardown is cut short by a kill, at whatever step: a peer finishes it, and nothing stays (real)', async () => {
  await using fleet = await openFleet({ settings: PATIENT });
  const [a, b] = await Promise.all([fleet.joinThroughProxy(), fleet.join()]);
  const { api } = a.replica;
  const all = await Promise.all(['rename', 'stop', 'remove'].map((who) => acquired(a.replica, person(who))));
  const [named, stopped, removed] = await Promise.all(all.map(({ id }) => fleet.containerOf(id)));
  const condemned = (container: string) => `/containers/${fleet.deployment}-condemned-\\w+-${container.slice(0, 12)}`;
  const steps = [
    a.proxy.fault(new RegExp(`^POST /containers/${named}/rename`), { kind: 'hold' }),
    a.proxy.fault(new RegExp(`^POST ${condemned(stopped!)}/stop`), { kind: 'hold' }),
    a.proxy.fault(new RegExp(`^DELETE ${condemned(removed!)}`), { kind: 'hold' }),
  ];
  const cut = all.map(({ id }) => expect(api.destroy(id)).rejects.toThrow());
  await Promise.all(steps.map(({ reached }) => reached));
  a.replica.signal('SIGKILL');
  const killedAt = Date.now();
  await Promise.all(cut);
  const states = new Map((await fleet.containers()).map(({ id, state }) => [id, state]));
  expect([named, stopped, removed].map((container) => states.get(container!))).toEqual([
    'running',
    'running',
    'exited',
  ]);

  for (const [n, { id }] of all.entries()) {
    const container = [named, stopped, removed][n];
    const done = await b.logged((line) => line.event === 'removed' && line.container === container);
    expect(timeOf(done) - killedAt).toBeLessThan(5_000 + 500 + SLACK_MS);
    await eventually(async () => (await b.api.get(id)).status === 404);
  }
  expect(await fleet.containers()).toEqual([]);
  expect((await b.api.list()).body.items).toEqual([]);
  expect(await answers((await acquired(b, person('stop'))).url)).toBe(true);
});
