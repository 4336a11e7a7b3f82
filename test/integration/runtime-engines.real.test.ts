import { randomBytes } from 'node:crypto';
import { mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LABEL } from '../../src/runtime/labels.ts';
import { person } from '../support/broker-client.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { acquired, answers, CREATE, deeds, failures, more, SLACK_MS, START, useFleets } from '../support/fleet.ts';
import { PrivateEngine } from '../support/private-engine.ts';

const { openFleet } = useFleets();
const CALL_MS = 2_900;
const OTHER = /^This is another container engine \(mark \S+\) than the one this deployment runs on/;

let second: PrivateEngine;
beforeAll(async () => {
  second = await PrivateEngine.start();
});
afterAll(async () => second?.[Symbol.asyncDispose]());

/** The containers of a deployment in the second engine. */
async function inSecond(deployment: string): Promise<{ id: string; name: string; state: string }[]> {
  const filters = { label: [`${LABEL.deployment}=${deployment}`] };
  const entries = await second.docker.listContainers({ all: true, filters });
  return entries.map(({ Id, Names, State }) => ({ id: Id, name: (Names[0] ?? '').slice(1), state: State }));
}

/** A path at which first the one engine is, and then the other. */
class Switch implements AsyncDisposable {
  readonly path: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, 'docker.sock');
  }

  static async to(target: string): Promise<Switch> {
    const made = new Switch(await mkdtemp(join(tmpdir(), 'switch-')));
    await made.turn(target);
    return made;
  }

  async turn(target: string): Promise<void> {
    const next = join(this.#folder, randomBytes(4).toString('hex'));
    await symlink(target, next);
    await rename(next, this.path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

test('[R-17] a replica on another engine is unready, says so, and neither adopts, removes nor drops anything (real)', async () => {
  await using fleet = await openFleet();
  await using first = await EngineProxy.open();
  await using other = await EngineProxy.open('listening', { socketPath: second.socketPath });
  await using gate = await Switch.to(first.socketPath);
  await second.load(fleet.image, dockerClient());
  const [right, moved] = await Promise.all([
    fleet.join(),
    fleet.join({ runtime: { docker: { socketPath: gate.path } } }),
  ]);
  const held = await acquired(right, person('held'));
  const theirs = await acquired(moved, person('theirs'));
  // What would be an orphan, if it were the deployment's own engine.
  const Labels = { [LABEL.deployment]: fleet.deployment };
  const stray = await second.docker.createContainer({ name: fleet.nameOf('f'.repeat(32)), Image: fleet.image, Labels });
  await stray.start();
  const containers = await fleet.containers();
  const idOfNew = fleet.idOf(person('new'));

  const wrong = await fleet.launch({ runtime: { docker: { socketPath: second.socketPath } } });
  // Connections that are kept alive go on leading to the engine that was there.
  await gate.turn(other.socketPath);
  first.cutAll();
  await Promise.all([more(wrong, 'engine-mismatch', 2), more(moved, 'engine-mismatch', 2)]);
  const ready = await wrong.api.readyz();
  expect(ready.status).toBe(503);
  expect(ready.body.because).toMatch(/the first reconcile is not done: This is another container engine/);
  expect(ready.body.dependencies?.engine.message).toMatch(OTHER);
  for (const { api } of [wrong, moved]) {
    const calls = [
      api.acquire(person('new')),
      api.acquire(person('held')),
      api.acquire(person('theirs')),
      api.destroy(held.id),
    ];
    for (const { status, body } of await Promise.all(calls)) {
      expect(body).toMatchObject({ status: 503, code: 'runtime_unavailable', detail: expect.stringMatching(OTHER) });
      expect(status).toBe(503);
    }
    expect((await api.healthz()).status).toBe(200);
  }
  await Promise.all([more(wrong, 'engine-mismatch', 2), more(right, 'reconcile-pass', 3)]);
  // A start that was refused takes its own record back.
  expect(deeds(right, wrong, moved).filter((deed) => deed !== `claimed ${idOfNew}`)).toEqual([]);
  expect(await fleet.containers()).toEqual(containers);
  expect(await inSecond(fleet.deployment)).toMatchObject([{ id: stray.id, state: 'running' }]);
  expect(await Promise.all([held, theirs].map(({ url }) => answers(url)))).toEqual([true, true]);

  await gate.turn(first.socketPath);
  other.cutAll();
  await more(moved, 'reconcile-pass', 2);
  expect(await acquired(moved, person('theirs'))).toMatchObject({ id: theirs.id, url: theirs.url });
  expect(await fleet.containers()).toEqual(containers);
  await stray.remove({ force: true });
});

test('[R-10] [R-11] beside a stopped engine every call ends in time; afterwards all goes on, without an orphan (real)', async () => {
  await using fleet = await openFleet();
  await using proxy = await EngineProxy.open('listening', { socketPath: second.socketPath });
  await second.load(fleet.image, dockerClient());
  const replica = await fleet.join({ runtime: { docker: { socketPath: proxy.socketPath } } });
  const { api } = replica;
  const held = await acquired(replica, person('held'));

  const create = proxy.fault(CREATE, { kind: 'hold' }, 2);
  const late = [api.acquire(person('asks again')), api.acquire(person('is gone'))];
  await eventually(async () => create.held === 2);
  const start = proxy.fault(START, { kind: 'hold' }, 1);
  late.push(api.acquire(person('starts late')));
  await start.reached;
  second.signal('SIGSTOP');
  const stoppedAt = performance.now();
  create.lift();
  start.lift();
  const during = Promise.all([...late, api.acquire(person('new'))]);
  expect((await api.healthz()).status).toBe(200);
  expect((await api.keepalive(held.id, held.holdId)).status).toBe(200);
  expect((await api.get(held.id)).body).toMatchObject({ state: 'active' });
  expect(await answers(held.url)).toBe(true);
  for (const { status, body } of await during) {
    expect([503, 504]).toContain(status);
    expect(body.code).toMatch(/^runtime_(timeout|unavailable)$/);
  }
  expect(performance.now() - stoppedAt).toBeLessThan(2 * CALL_MS + SLACK_MS);
  expect((await api.healthz()).status).toBe(200);
  await failures(replica, 'reconcile', 1);

  second.signal('SIGCONT');
  const again = await Promise.all(['held', 'asks again', 'starts late'].map((who) => acquired(replica, person(who))));
  expect(again[0]).toMatchObject({ id: held.id, url: held.url });
  const names = again.map(({ id }) => fleet.nameOf(id)).sort();
  await eventually(async () => {
    const present = (await inSecond(fleet.deployment)).map(({ name }) => name).sort();
    return JSON.stringify(present) === JSON.stringify(names);
  }, 30_000);
  await more(replica, 'reconcile-pass', 2);
  expect((await inSecond(fleet.deployment)).map(({ state }) => state)).toEqual(['running', 'running', 'running']);
  expect(await Promise.all(again.map(({ url }) => answers(url)))).toEqual([true, true, true]);
});
