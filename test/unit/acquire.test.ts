import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import { HOLD_MS, handedOut, LEASE_MS, World } from '../support/world.ts';

const silent = (): Error => new BrokerError('runtime_timeout', 'no answer');

test('a first acquire starts a container, another one gets the same with a hold of its own', async () => {
  const world = new World();
  const a = world.replica('a');
  const first = handedOut(await a.take('u'));
  const second = handedOut(await a.take('u'));
  expect(first.origin).toBe('created');
  expect(second.origin).toBe('reused');
  expect(second.sandbox.url).toBe(first.sandbox.url);
  expect(second.hold).not.toBe(first.hold);
  expect(world.engine.containers).toHaveLength(1);
  expect(a.turns.size).toBe(0);
});

test('twenty at once start one container, get twenty holds, and leave the table of turns empty', async () => {
  const world = new World();
  const a = world.replica('a');
  const all = (await Promise.all(Array.from({ length: 20 }, () => a.take('u')))).map(handedOut);
  expect(new Set(all.map(({ hold }) => hold)).size).toBe(20);
  expect(world.engine.containers).toHaveLength(1);
  expect(a.turns.size).toBe(0);
});

test('[A-07] an engine that cannot say whether it runs: verified is handed out, unverified is refused, nothing is removed', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  a.points.break('look', silent);
  expect(handedOut(await a.take('u', 0)).origin).toBe('reused');
  await world.clock.advance(LEASE_MS); // nobody renewed: a new life, in which nothing has been verified
  await expect(a.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  const holds = world.record('u')?.holds ?? new Map();
  a.points.repair('look');
  await expect(a.take('u', 0)).resolves.toMatchObject({ kind: 'ready' });
  expect([...holds.keys()].filter((hold) => hold !== 0)).toHaveLength(2); // the two handouts, not the refusal
});

test('[R-05] a paused container is not handed out, not even a verified one, and not replaced', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.engine.pause(container!.id);
  await expect(a.take('u', 0)).rejects.toMatchObject({ code: 'sandbox_unsettled' });
  world.engine.unpause(container!.id);
  expect(handedOut(await a.take('u', 0)).sandbox.url).toBe(`http://127.0.0.1:${container!.port}`);
});

test.for([
  ['ensureImage', 'image_unavailable'],
  ['look', 'runtime_timeout'],
  ['create', 'runtime_unavailable'],
  ['start', 'sandbox_start_failed'],
  ['waitReady', 'sandbox_not_ready'],
] as const)('[A-11] a start that fails at %s leaves no container, no lease and no slot', async ([method, code]) => {
  const world = new World({ maxSandboxes: 1 });
  const a = world.replica('a');
  a.points.failNext(method, new BrokerError(code, `${method} failed`));
  await expect(a.take('u')).rejects.toMatchObject({ code });
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
  expect(a.tracked.size).toBe(0);
  expect(handedOut(await a.take('other')).origin).toBe('created'); // the only slot is free again
});

test('[A-11] when the clean-up fails too, the first error is told and the reconciler removes the rest', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('waitReady', new BrokerError('sandbox_not_ready', 'first'));
  a.points.failNext('remove', new BrokerError('runtime_timeout', 'second'));
  await expect(a.take('u')).rejects.toMatchObject({ code: 'sandbox_not_ready' });
  expect(world.engine.containers).toHaveLength(1);
  await world.clock.advance(2 * LEASE_MS);
  await a.reconciler.pass();
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});

test('[A-11] an engine that says nothing about a start that was carried out leaves one container, used by it', async () => {
  const world = new World();
  const a = world.replica('a');
  a.points.failNext('create', new BrokerError('runtime_timeout', 'reply lost'), 'after');
  expect(handedOut(await a.take('u')).origin).toBe('created');
  expect(world.engine.containers).toHaveLength(1);
});

test('[A-12] nobody waits any more: the start goes on, ends ready with a short hold, and is found by asking again', async () => {
  const world = new World();
  const a = world.replica('a');
  const start = a.points.hold('start');
  const answer = await a.take('u', 0);
  expect(answer).toMatchObject({ kind: 'starting', sandbox: { url: null, state: 'starting' } });
  await start.reached;
  start.release();
  await a.tasks.drained(60_000);
  const record = world.record('u');
  expect(record?.state).toBe('ready');
  expect([...(record?.holds.values() ?? [])].map((until) => until - world.database.now())).toEqual([60_000]);
  expect(handedOut(await a.take('u')).origin).toBe('reused');
  expect(a.tracked.size).toBe(1);
});

test('[A-12] a caller that hangs up before its turn takes no hold', async () => {
  const world = new World();
  const a = world.replica('a');
  const start = a.points.hold('start');
  const first = a.take('u');
  await start.reached;
  const hangUp = new AbortController();
  const second = a.take('u', 50_000, hangUp.signal);
  hangUp.abort();
  expect((await second).kind).toBe('starting');
  start.release();
  handedOut(await first);
  await a.tasks.drained(60_000);
  expect(world.record('u')?.holds.size).toBe(1);
});

test('[A-12] a handout that nobody can receive any more is given up', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  const before = world.record('u')?.holds.size;
  const hangUp = new AbortController();
  const take = a.storePoints.hold('take', 'after');
  const late = a.take('u', 50_000, hangUp.signal);
  await take.reached;
  hangUp.abort();
  take.release();
  await late;
  await a.tasks.drained(60_000);
  expect(world.record('u')?.holds.size).toBe(before);
});

test('[A-13] an expired start of a crashed replica: the next acquire gets a working sandbox, one container in the end', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  a.points.hold('start'); // a crashes here: it made a container and never starts it
  void a.take('u', 0).catch(() => undefined);
  await world.clock.settle();
  const waiting = b.take('u');
  await world.clock.advance(1_000);
  expect(world.record('u')?.owner).toBe('a'); // a live start is waited for
  await world.clock.advance(LEASE_MS);
  expect(handedOut(await waiting).origin).toBe('created');
  await b.tasks.drained(60_000);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  expect(world.record('u')?.owner).toBe('b');
});

test('[A-14] found by name after the store lost its state: handed out as discovered, with an unknown hold beside', async () => {
  const world = new World();
  const a = world.replica('a');
  const before = handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  const after = handedOut(await a.take('u'));
  expect(after.origin).toBe('discovered');
  expect(after.sandbox.url).toBe(before.sandbox.url);
  expect([...(world.record('u')?.holds.keys() ?? [])].sort()).toEqual([0, after.hold]);
  expect(world.record('u')?.verified).toBe(true);
});

test('[A-10] one that was found and does not answer is kept, unverified, under an unknown hold', async () => {
  const world = new World();
  const a = world.replica('a');
  handedOut(await a.take('u'));
  world.database.remove(world.idOf('u'));
  world.engine.neverReady('default');
  await expect(a.take('u')).rejects.toMatchObject({ code: 'sandbox_not_ready' });
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  expect(world.record('u')).toMatchObject({ state: 'ready', verified: false });
  expect([...(world.record('u')?.holds.keys() ?? [])]).toEqual([0]);
});

test('[A-16] two callers hold it; one releases: it stays active and the keepalive of the other works', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const first = handedOut(await a.take('u'));
  const second = handedOut(await b.take('u'));
  const id = world.idOf('u');
  await a.store.release(id, first.hold);
  await world.pass(HOLD_MS - 1_000, a, b);
  expect(await a.store.keepalive(id, second.hold)).toMatchObject({ state: 'ready' });
  await world.pass(HOLD_MS - 1_000, a, b);
  await b.reaper.pass();
  await b.tasks.drained(60_000);
  expect(world.engine.containers).toHaveLength(1);
});

test('[A-17] identities that look alike are different sandboxes', () => {
  const world = new World();
  const pairs = ['a-b', 'a', 'A', 'caf\u00e9', 'cafe\u0301', 'a:b', 'a/b', '["a"]'].map((user) => world.idOf(user));
  expect(new Set(pairs).size).toBe(pairs.length);
});

test('[A-06] the container died: a new one is started, the old one removed, and why it ended is told once', async () => {
  const world = new World();
  const a = world.replica('a');
  const before = handedOut(await a.take('u'));
  const [old] = world.engine.containers;
  world.engine.kill(old!.id, { exitCode: 137, reason: 'out of memory', logTail: 'last words' });
  const after = handedOut(await a.take('u'));
  expect(after).toMatchObject({
    origin: 'created',
    previous: { reason: 'out of memory', exitCode: 137, logTail: 'last words' },
  });
  expect(after.sandbox.url).not.toBe(before.sandbox.url);
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ id }) => id)).not.toContain(old!.id);
  expect(handedOut(await a.take('u')).previous).toBeNull();
});

test('[A-06] of two replicas that find it dead at once one starts anew, and both hand out the same container', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  handedOut(await a.take('u'));
  world.engine.kill(world.engine.containers[0]!.id);
  const held = [a.storePoints.hold('restart'), b.storePoints.hold('restart')];
  const both = [a.take('u'), b.take('u')];
  await Promise.all(held.map(({ reached }) => reached));
  for (const { release } of held) release();
  await world.clock.advance(1_000);
  const urls = (await Promise.all(both)).map((outcome) => handedOut(outcome).sandbox.url);
  expect(new Set(urls).size).toBe(1);
  await Promise.all([a.tasks.drained(60_000), b.tasks.drained(60_000)]);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
});

test('[A-06] a container that was restarted after it was seen dead is left running, and its old url is not told again', async () => {
  const world = new World();
  const a = world.replica('a');
  const before = handedOut(await a.take('u'));
  const [old] = world.engine.containers;
  world.engine.kill(old!.id);
  const restart = a.storePoints.hold('restart');
  const again = a.take('u');
  await restart.reached;
  world.engine.run(old!.id);
  restart.release();
  const after = handedOut(await again);
  await a.tasks.drained(60_000);
  expect(after.sandbox.url).not.toBe(before.sandbox.url);
  expect(world.engine.get(old!.id).state).toBe('running');
});

test('[R-07] a container that came back under another port is handed out under the new one', async () => {
  const world = new World();
  const a = world.replica('a');
  const before = handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  world.engine.kill(container!.id);
  world.engine.run(container!.id);
  const after = handedOut(await a.take('u'));
  expect(after.sandbox.url).toBe(`http://127.0.0.1:${container!.port}`);
  expect(after.sandbox.url).not.toBe(before.sandbox.url);
  expect(world.record('u')?.url).toBe(after.sandbox.url);
});

test('[A-05] the store dies between take and activate: nothing is handed out; back with its record the container is gone', async () => {
  const world = new World();
  const a = world.replica('a');
  const down = (): Error => new BrokerError('store_unavailable', 'no connection');
  const ready = a.points.hold('waitReady', 'after');
  const answer = a.take('u');
  await ready.reached;
  for (const method of ['activate', 'claim', 'release', 'renew'] as const) a.storePoints.break(method, down);
  ready.release();
  await expect(answer).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.engine.containers).toHaveLength(1);
  for (const method of ['activate', 'claim', 'release', 'renew'] as const) a.storePoints.repair(method);
  await world.pass(LEASE_MS / 3, a);
  expect(world.engine.containers).toHaveLength(1); // a peer may have it: its owner gets the time to say so
  await world.pass(LEASE_MS, a);
  await a.tasks.drained(60_000);
  expect(world.engine.containers).toEqual([]);
  expect(world.record('u')?.state).toBe('gone');
});

test('[A-05] the store dies between take and activate, and a peer takes the sandbox over: its container is kept', async () => {
  const world = new World();
  const [a, b] = [world.replica('a'), world.replica('b')];
  const down = (): Error => new BrokerError('store_unavailable', 'no connection');
  for (const method of ['activate', 'claim', 'release'] as const) a.storePoints.break(method, down);
  await expect(a.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  for (const method of ['activate', 'claim', 'release'] as const) a.storePoints.repair(method);
  await world.clock.advance(LEASE_MS);
  expect(handedOut(await b.take('u')).origin).toBe('discovered');
  await world.pass(3 * LEASE_MS, a, b);
  await a.tasks.drained(60_000);
  expect(world.engine.containers.map(({ state }) => state)).toEqual(['running']);
  expect(world.record('u')).toMatchObject({ state: 'ready', owner: 'b' });
});

test('[A-05] the store is down: nothing is started', async () => {
  const world = new World();
  const a = world.replica('a');
  a.storePoints.break('take', () => new BrokerError('store_unavailable', 'no connection'));
  await expect(a.take('u')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(world.engine.containers).toEqual([]);
});

test.for(['keep', 'replace'] as const)(
  '[A-15] the profile changed, and its sandbox is unheld: %s',
  async (onSpecChange) => {
    const world = new World();
    const old = world.replica('old', { onSpecChange });
    const before = handedOut(await old.take('u'));
    await old.store.release(before.sandbox.id, before.hold);
    await world.pass(LEASE_MS, old);
    const changed = world.replica('changed', { onSpecChange, spec: 'spec-2' });
    const after = handedOut(await changed.take('u'));
    await changed.tasks.drained(60_000);
    expect(after.origin).toBe(onSpecChange === 'replace' ? 'created' : 'reclaimed');
    expect(after.sandbox.url === before.sandbox.url).toBe(onSpecChange === 'keep');
    expect(world.record('u')?.spec).toBe(onSpecChange === 'replace' ? 'spec-2' : 'spec-1');
    expect(world.engine.containers).toHaveLength(1);
    await changed.store.release(after.sandbox.id, after.hold);
    expect(handedOut(await old.take('u')).sandbox.url).toBe(after.sandbox.url); // not replaced back by the older one
  },
);

test('[A-15] a held sandbox is never replaced, whoever holds it', async () => {
  const world = new World();
  const old = world.replica('old', { onSpecChange: 'replace' });
  const before = handedOut(await old.take('u'));
  await world.pass(LEASE_MS, old);
  const changed = world.replica('changed', { onSpecChange: 'replace', spec: 'spec-2' });
  expect(handedOut(await changed.take('u')).sandbox.url).toBe(before.sandbox.url);
});
