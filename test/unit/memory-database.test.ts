import { expect, test } from 'vitest';
import { asContainerId, asEngineMark, asOwnerId, type Fence } from '../../src/domain/ids.ts';
import { PREVIOUS_KEPT_MS } from '../../src/domain/sandbox.ts';
import { MemoryDatabase } from '../../src/leases/memory-database.ts';
import { MemorySpares } from '../../src/leases/memory-spares.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { C1, C2, ENGINE, ID, IDENTITY, otherIdentity, POLICY } from '../support/lease-harness.ts';

/** The store on a clock that the test moves. */
function open() {
  let monotonic = 0;
  let lives = 0;
  const clock = { wall: () => 1_000_000, monotonic: () => monotonic };
  const database = new MemoryDatabase({ clock, newId: () => `life-${++lives}`, policy: POLICY });
  const store = new MemoryLeaseStore({ database, owner: asOwnerId('host:a') });
  const advance = (ms: number): void => {
    monotonic += ms;
  };
  return { database, store, advance };
}

async function tombstone(store: MemoryLeaseStore, id = ID): Promise<void> {
  const claim = await store.condemnByIntent(id, C1);
  if (typeof claim === 'string') throw new Error(claim);
  await store.drop(id, claim.fence, null);
}

test('[L-30] a tombstone is shown for an hour, in reads and in pages, and not a moment longer', async () => {
  const { store, advance } = open();
  await tombstone(store);
  const shown = async () => [(await store.read(ID)).kind, (await store.page(null, 10)).items.map(({ kind }) => kind)];
  advance(PREVIOUS_KEPT_MS - 1);
  expect(await shown()).toEqual(['record', ['record']]);
  advance(1);
  expect(await shown()).toEqual(['absent', []]);
});

test('a tombstone whose id was started anew is not forgotten with the old ones', async () => {
  const { database, store, advance } = open();
  await tombstone(store);
  await store.take({ id: ID, identity: IDENTITY, spec: 's' });
  advance(PREVIOUS_KEPT_MS);
  await tombstone(store, otherIdentity('t2').id);
  expect(database.idsAfter(null)).toHaveLength(2);
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 1, user: 1 });
});

test('[L-25] outside a life a read shows every record as of another one, and begins none', async () => {
  const { database, store, advance } = open();
  const reply = await store.take({ id: ID, identity: IDENTITY, spec: 's' });
  const life = () => database.life();
  expect(reply).toMatchObject({ life: 'life-1' });
  advance(POLICY.leaseMs);
  expect(life()).toBe('');
  expect(await store.read(ID)).toMatchObject({ record: { life: '' } });
  database.settleLife();
  expect(life()).toBe('life-2');
  expect(database.lifeAge()).toBe(0);
  advance(5);
  expect(database.lifeAge()).toBe(5);
});

test('[C-04] the counts follow what becomes of a record, also of one without a user', async () => {
  const { database, store } = open();
  const found = { container: C1, engine: ENGINE, url: null, since: 0 as Fence };
  const unknown = { profile: null, userId: null, threadId: null, spec: null, createdAt: null };
  await store.adopt({ id: ID, container: { ...found, ...unknown } });
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 1, user: 0 });
  await store.take({ id: ID, identity: IDENTITY, spec: 's' });
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 1, user: 1 });
  await store.take({ ...otherIdentity('t2'), spec: 's' });
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 2, user: 2 });
  await tombstone(store, otherIdentity('t3').id);
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 2, user: 2 });
  for (const id of [ID, otherIdentity('t2').id]) database.remove(id);
  expect(database.usage(IDENTITY.userId)).toEqual({ fleet: 0, user: 0 });
});

test('ids come in their order, from any place on', async () => {
  const { database, store } = open();
  const ids = Array.from({ length: 9 }, (_, n) => otherIdentity(`t${n}`).id);
  for (const id of ids) await tombstone(store, id);
  const sorted = ids.toSorted();
  expect(database.idsAfter(null)).toEqual(sorted);
  for (const [n, id] of sorted.entries()) expect(database.idsAfter(id)).toEqual(sorted.slice(n + 1));
  await tombstone(store, ID);
  expect(database.idsAfter(null)).toContain(ID);
  database.remove(ID);
  expect(database.idsAfter(null)).toEqual(sorted);
});

test('the first engine that was seen is remembered', async () => {
  const { store } = open();
  expect(await store.settleEngine(ENGINE)).toBe(ENGINE);
  expect(await store.settleEngine(asEngineMark('another'))).toBe(ENGINE);
});

test('a store that was closed says so, whatever it is asked', async () => {
  const { store } = open();
  await store.ping();
  await store.close();
  await store.close();
  const closed = { code: 'store_unavailable' };
  const spare = { container: C1, name: 'n', engine: ENGINE, url: 'u', profile: 'p', spec: 's', createdAt: 0 };
  const asked = [
    ...[() => store.ping(), () => store.read(ID), () => store.readMany([]), () => store.page(null, 1)],
    ...[() => store.renew([]), () => store.handover([]), () => store.addSpare(spare)],
    ...[() => store.retireSpare(C1), () => store.pool(), () => store.tendSpares(), () => store.leaveSpares()],
    ...[() => store.settleEngine(ENGINE), () => store.condemnByIntent(ID, null), () => store.release(ID, 1 as Fence)],
    () => store.take({ id: ID, identity: IDENTITY, spec: 's' }),
  ];
  for (const ask of asked) await expect(ask()).rejects.toMatchObject(closed);
});

test('[C-05] spares: the oldest of its profile and spec, each once; for an hour it is not added again', () => {
  const spares = new MemorySpares();
  const spare = (container: typeof C1, createdAt: number, changes = {}) =>
    ({ container, name: 'n', engine: ENGINE, url: 'u', profile: 'p', spec: 's', createdAt, ...changes }) as const;
  const third = asContainerId('a0'.repeat(32));
  spares.add(spare(C2, 2), 0);
  spares.add(spare(C1, 2), 0);
  spares.add(spare(third, 1, { spec: 'another' }), 0);
  expect(spares.claim('other', 's', 0)).toBeNull();
  expect(spares.claim('p', 's', 0)?.container).toBe(C1);
  spares.add(spare(C1, 0), PREVIOUS_KEPT_MS - 1);
  expect(spares.claim('p', 's', PREVIOUS_KEPT_MS - 1)?.container).toBe(C2);
  expect(spares.claim('p', 's', PREVIOUS_KEPT_MS - 1)).toBeNull();
  spares.add(spare(C1, 5), PREVIOUS_KEPT_MS);
  spares.add(spare(third, 4), PREVIOUS_KEPT_MS);
  expect(spares.claim('p', 's', PREVIOUS_KEPT_MS)?.container).toBe(third);
  expect(spares.claim('p', 's', PREVIOUS_KEPT_MS)?.container).toBe(C1);
});
