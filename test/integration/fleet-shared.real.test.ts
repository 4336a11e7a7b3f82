import { afterAll, beforeAll, expect, test } from 'vitest';
import { asContainerId, asOwnerId, asSandboxId, parseFence } from '../../src/domain/ids.ts';
import { condemnedName } from '../../src/domain/names.ts';
import type { AcquiredBody, SandboxBody } from '../../src/http/schemas.ts';
import { writeLabels } from '../../src/runtime/labels.ts';
import { type Person, person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { dockerClient, eventually } from '../support/docker.ts';
import { acquired, answers, DURABLE, deeds, type Fleet, LEASE_MS, useFleets, watch } from '../support/fleet.ts';

const { openFleet } = useFleets();
const docker = dockerClient();

/** Two profiles, as they were and as they became. */
const generation = (number: string) => ({
  profiles: {
    fickle: { onSpecChange: 'replace', environment: { GENERATION: number } },
    steady: { onSpecChange: 'keep', environment: { GENERATION: number } },
  },
});

let fleet: Fleet;
let a: BrokerProcess;
let b: BrokerProcess;
beforeAll(async () => {
  fleet = await openFleet({ settings: generation('1'), redis: DURABLE });
  [a, b] = await Promise.all([fleet.join(), fleet.join()]);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

async function generationOf(container: string): Promise<string | undefined> {
  const { Config } = await docker.getContainer(container).inspect();
  return Config.Env.find((pair) => pair.startsWith('GENERATION='))?.slice('GENERATION='.length);
}

test('[A-15] the profile changed: `keep` leaves it; `replace` waits until it is unheld, and no two replicas take turns (real)', async () => {
  const [steady, fickle] = await Promise.all(
    ['steady', 'fickle'].map((profile) => acquired(a, person('profile'), { profile })),
  );
  const [steadily, old] = await Promise.all([steady!, fickle!].map(({ id }) => fleet.containerOf(id)));
  await a.api.release(steady!);
  const c = await fleet.join(generation('2'));
  const reclaimed = async (replica: BrokerProcess, profile: string, origin = 'reclaimed'): Promise<AcquiredBody> => {
    const { status, body } = await replica.api.acquire(person('profile'), { profile });
    expect(status).toBe(200);
    expect(body.origin).toBe(origin);
    return body;
  };

  expect((await reclaimed(c, 'steady')).url).toBe(steady!.url);
  expect(await generationOf(steadily!)).toBe('1');
  const beside = await reclaimed(c, 'fickle', 'reused');
  expect(beside.url).toBe(fickle!.url);
  await c.api.release(beside);
  await a.api.release(fickle!);

  const replaced = await acquired(c, person('profile'), { profile: 'fickle' });
  expect(replaced).toMatchObject({ id: fickle!.id, origin: 'created', holds: 1 });
  const fresh = await fleet.containerOf(fickle!.id);
  expect(fresh).not.toBe(old);
  expect(await generationOf(fresh)).toBe('2');
  await eventually(async () => String(await fleet.containersOf(fickle!.id)) === fresh);

  let last = replaced;
  for (const replica of [a, c, a, c]) {
    await replica.api.release(last);
    last = await reclaimed(replica, 'fickle');
    expect(last.url).toBe(replaced.url);
  }
  expect(await fleet.containersOf(fickle!.id)).toEqual([fresh]);
  expect(await fleet.containersOf(steady!.id)).toEqual([steadily]);
});

test('[H-07] every replica lists the same, by every filter, and pages stay right while sandboxes come and go (real)', async () => {
  const thread = (n: number): Person => ({ userId: 'user of the list', threadId: `thread ${n}` });
  const all = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => acquired(n % 2 === 0 ? a : b, thread(n))));
  await a.api.release(all[0]!);
  const list = async (replica: BrokerProcess, query: Record<string, string>): Promise<readonly SandboxBody[]> =>
    (await replica.api.list({ userId: 'user of the list', ...query })).body.items;
  const ids = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id);

  const whole = await list(a, {});
  expect(ids(whole)).toEqual(ids(all).sort());
  for (const [query, matching] of [
    [{}, all],
    [{ threadId: 'thread 3' }, [all[2]!]],
    [{ state: 'warm' }, [all[0]!]],
    [{ state: 'active' }, all.slice(1)],
    [{ profile: 'default' }, all],
    [{ profile: 'steady' }, []],
    [{ userId: 'nobody' }, []],
  ] as const) {
    const told = await list(a, query);
    expect(told).toEqual(whole.filter(({ id }) => ids(matching).includes(id)));
    expect(await list(b, query)).toEqual(told);
  }

  // Between the pages one goes that was told, one that was not, and others come.
  const told: string[] = [];
  let cursor: string | null = null;
  let page = 0;
  const gone = [whole[0]!.id, whole[4]!.id];
  do {
    const replica: BrokerProcess = page % 2 === 0 ? a : b;
    const query: Record<string, string> = {
      userId: 'user of the list',
      limit: '2',
      ...(cursor === null ? {} : { cursor }),
    };
    const { body } = await replica.api.list(query);
    expect(body.items.length).toBeLessThanOrEqual(2);
    told.push(...ids(body.items));
    cursor = body.nextCursor;
    const [goes] = gone.splice(0, 1);
    if (goes !== undefined) {
      expect((await b.api.destroy(goes)).status).toBe(204);
      await acquired(a, thread(7 + page));
    }
    page += 1;
  } while (cursor !== null);
  expect(page).toBeGreaterThan(2);
  expect(new Set(told).size, 'nothing is told twice').toBe(told.length);
  expect(told).toEqual([...told].sort());
  const stayed = [0, 1, 2, 3, 5].map((n) => whole[n]!.id);
  expect(told.filter((id) => whole.some((one) => one.id === id))).toEqual(stayed);
});

test('[T-17] what a verified record does not name goes after two sightings a lease apart, and stays beside an unverified one (real)', async () => {
  const who = person('strays');
  const { id, url } = await acquired(a, who);
  const named = await fleet.containerOf(id);
  expect(await fleet.record(id)).toMatchObject({ container: named, verified: '1' });
  // Out of the way; by its id it is known.
  await docker.getContainer(named).rename({ name: `${fleet.deployment}-aside` });
  const since = new Map<string, number>(); // no sighting is earlier than the container
  const made = async (): Promise<string> => {
    const before = Date.now();
    const container = await stray(who);
    since.set(container, before);
    return container;
  };
  const condemned = await made();
  await docker.getContainer(condemned).rename({
    name: condemnedName(fleet.deployment, asSandboxId(id), asContainerId(condemned)),
  });
  const impostor = await made();
  const ours = async (): Promise<string[]> => (await fleet.containersOf(id)).sort();
  expect(await ours()).toEqual([condemned, impostor].sort());
  await eventually(async () => (await ours()).length === 0, 20_000);
  for (const container of [condemned, impostor]) {
    const removed = await eventually(async () => {
      const lines = [a, b].flatMap((replica) => [...replica.events('removed'), ...replica.events('removal-failed')]);
      const own = lines.filter((line) => line.container === container);
      return own.length > 0 && own;
    });
    expect(new Set(removed.map(({ reason }) => reason))).toEqual(new Set(['stray']));
    for (const { time } of removed) expect(Date.parse(time) - since.get(container)!).toBeGreaterThanOrEqual(LEASE_MS);
  }
  expect((await docker.getContainer(named).inspect()).State.Running).toBe(true);

  await fleet.redis.stop();
  await fleet.redis.start();
  await eventually(async () => (await fleet.record(id)).verified === '0');
  const spared = await stray(who);
  const done = deeds(a, b);
  await Promise.all([a, b].map((replica) => watch(replica, LEASE_MS + 1_500)));
  expect(await fleet.record(id)).toMatchObject({ container: named, verified: '0' });
  expect(await ours()).toEqual([spared]);
  expect(deeds(a, b).filter((deed) => deed.endsWith(id)).length).toBe(done.filter((deed) => deed.endsWith(id)).length);
  expect(await answers(url)).toBe(true);
});

/** A container that is made behind the brokers' backs, running under the sandbox's name. */
async function stray({ userId, threadId }: Person): Promise<string> {
  const handout = { fence: parseFence('1')!, userId, threadId };
  const owner = asOwnerId('somebody:else');
  const { deployment, image } = fleet;
  const container = await docker.createContainer({
    name: fleet.nameOf(fleet.idOf({ userId, threadId })),
    Image: image,
    Labels: writeLabels({ deployment, profile: 'default', spec: 'none', owner, handout }),
  });
  await container.start();
  return container.id;
}
