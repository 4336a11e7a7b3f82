import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { person } from '../support/broker-client.ts';
import type { BrokerProcess } from '../support/broker-process.ts';
import { eventually } from '../support/docker.ts';
import {
  acquired,
  answers,
  CREATE,
  deeds,
  type Fleet,
  failures,
  LEASE_MS,
  more,
  type Proxied,
  useFleets,
  watch,
} from '../support/fleet.ts';
import { RedisProxy } from '../support/redis.ts';

const { openFleet } = useFleets();
/** What changes something in the engine. */
const CHANGE = /^(POST|PUT|DELETE) \/(containers|networks|volumes)\//;
const IDLE_MS = 1_000;

let fleet: Fleet;
let line: RedisProxy;
let a: BrokerProcess;
let cutOff: Proxied;
beforeAll(async () => {
  fleet = await openFleet({ settings: { idle: { timeout: `${IDLE_MS}ms` } } });
  line = await RedisProxy.start(fleet.redis.port);
  [a, cutOff] = await Promise.all([fleet.join(), fleet.joinThroughProxy({ store: { url: line.url } })]);
});
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await line?.[Symbol.asyncDispose]();
});

async function refuses({ api }: BrokerProcess, who: string): Promise<void> {
  const { status, headers, body } = await api.acquire(person(who));
  expect(status).toBe(503);
  expect(body).toMatchObject({ code: 'store_unavailable', retryable: true });
  expect(headers['retry-after']).toMatch(/^\d+$/);
  expect((await api.healthz()).status).toBe(200);
}

const keptAlive = ({ api }: BrokerProcess, { id, holdId }: AcquiredBody): Promise<unknown> =>
  eventually(async () => (await api.keepalive(id, holdId)).status === 200, 30_000);

test('[T-08] a peer is cut off from the store: others adopt, it touches nothing, and goes on when the line is back (real)', async () => {
  const { replica: b, proxy } = cutOff;
  const held = await acquired(b, person('cut off'));
  const container = await fleet.containerOf(held.id);
  const owner = (await b.api.status()).body.owner;
  expect(await fleet.record(held.id)).toMatchObject({ owner });
  const changes = proxy.count(CHANGE);
  const done = deeds(b);

  line.replies({ swallowed: true });
  line.reset();
  await refuses(b, 'new');
  // How soon is another matter: an engine under load can fail the peer's passes for a while.
  await eventually(async () => deeds(a).includes(`adopted ${held.id}`), 40_000);
  await refuses(b, 'new');
  expect((await a.api.keepalive(held.id, held.holdId)).status).toBe(200);
  expect(await fleet.record(held.id)).toMatchObject({ owner: (await a.api.status()).body.owner });

  line.replies({});
  line.reset();
  await keptAlive(b, held);
  await more(b, 'renewal-pass', 2); // its own lease is over: it renews nothing of what the other one has now
  expect(await fleet.record(held.id)).toMatchObject({ owner: (await a.api.status()).body.owner });
  expect(b.events('lease-lost')).toEqual([]); // it did not even ask
  expect(proxy.count(CHANGE)).toBe(changes);
  expect(deeds(b)).toEqual(done);
  expect(await fleet.containersOf(held.id)).toEqual([container]);
  const { status, body } = await b.api.acquire(person('cut off'));
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: held.id, url: held.url, origin: 'reused', owner });
});

test('[T-06] [H-06] the store is gone for two leases and back empty: what is held goes on and is owned again (real)', async () => {
  const replicas = [a, cutOff.replica];
  const held = await Promise.all(replicas.map((replica, n) => acquired(replica, person(`held by ${n}`))));
  const containers = await Promise.all(held.map(({ id }) => fleet.containersOf(id)));
  await fleet.redis.stop();
  const until = performance.now() + 2 * LEASE_MS;
  await Promise.all(replicas.map((replica) => failures(replica, 'renewal', 1)));
  await eventually(
    async () => {
      for (const replica of replicas) await refuses(replica, 'meanwhile');
      expect(await Promise.all(held.map(({ url }) => answers(url)))).toEqual([true, true]);
      return performance.now() > until;
    },
    2 * LEASE_MS + 20_000,
  );

  await fleet.redis.start();
  for (const one of held) {
    await eventually(async () => {
      expect(await answers(one.url)).toBe(true);
      return (await fleet.record(one.id)).state === 'ready';
    }, 30_000);
  }
  // Before any holder says something, the reapers have had the time to look.
  await Promise.all(replicas.map((replica) => watch(replica, 2 * IDLE_MS)));
  for (const one of held) {
    for (const replica of replicas) await keptAlive(replica, one);
  }
  const owners = await Promise.all(replicas.map(async ({ api }) => (await api.status()).body.owner));
  for (const [n, { id }] of held.entries()) {
    expect(owners).toContain((await fleet.record(id)).owner);
    expect(await fleet.containersOf(id)).toEqual(containers[n]);
  }
  expect(await fleet.containersOf(fleet.idOf(person('meanwhile')))).toEqual([]);
  expect(deeds(...replicas).filter((deed) => /^(claimed|removed)/.test(deed))).toEqual([]);
});

test('[H-09] /metrics answers while store and engine are down, and its series do not grow with callers (real)', async () => {
  const { replica: b, proxy } = cutOff;
  // As far as the engine, which refuses: a start that failed is told by as many labels as one that went well.
  const full = proxy.fault(CREATE, { kind: 'refuse', status: 500, message: 'no space left on device' });
  const drive = async (from: number): Promise<void> => {
    for (let n = from; n < from + 40; n += 1) {
      const id = n.toString(16).padStart(32, '0');
      await Promise.all([
        b.api.get(id),
        b.api.keepalive(id, '1'),
        b.api.list({ userId: `user ${n}`, threadId: `thread ${n}` }),
        b.api.call('GET', `/unknown/${n}`),
        b.api.acquire({ userId: `user ${n}`, threadId: `thread ${n}` }, { profile: `none-${n}` }),
        b.api.acquire({ userId: `user ${n}`, threadId: `thread ${n}` }),
      ]);
    }
  };
  await drive(0);
  await b.api.metrics(); // itself a request that is counted from then on
  // The process's own series tell of its collector and its handles, not of callers.
  const series = async (): Promise<string[]> =>
    [...(await b.api.metrics()).keys()].filter((name) => name.startsWith('sandbox_broker_')).sort();
  const before = await series();
  await drive(100);
  expect(await series()).toEqual(before);
  expect(full.hits).toBeGreaterThanOrEqual(80);
  full.lift();

  const engine = proxy.fault(/./, { kind: 'cut' });
  proxy.cutAll();
  await fleet.redis.stop();
  await eventually(async () => {
    const down = await b.api.metrics();
    return ['store', 'engine'].every((name) => down.get(`sandbox_broker_dependency_up{dependency="${name}"}`) === 0);
  }, 20_000);
  engine.lift();
  await fleet.redis.start();
});
