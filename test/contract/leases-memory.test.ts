import { expect, test } from 'vitest';
import { asOwnerId, asSandboxId, type Fence } from '../../src/domain/ids.ts';
import { MemoryDatabase } from '../../src/leases/memory-database.ts';
import { MemoryLeaseStore } from '../../src/leases/memory-store.ts';
import { C1, HOUR, ID, memoryHarness, otherIdentity, POLICY } from '../support/lease-harness.ts';
import { leaseContract } from './lease-contract.ts';

leaseContract('memory', memoryHarness);

function open(clock: { wall(): number; monotonic(): number }) {
  let lives = 0;
  const newId = () => `life-${++lives}`;
  const database = new MemoryDatabase({ clock, newId, policy: POLICY });
  return { database, store: new MemoryLeaseStore({ database, owner: asOwnerId('host:a') }) };
}

test('[L-23] the memory store says that it cannot see peers', async () => {
  const harness = await memoryHarness(POLICY);
  expect(harness.open('host:a').seesPeers).toBe(false);
});

test('its clock begins at the wall clock and never goes back with it', async () => {
  let wall = 1_000_000;
  let monotonic = 5;
  const { store } = open({ wall: () => wall, monotonic: () => monotonic });
  expect((await store.read(ID)).now).toBe(1_000_000);
  wall = 0;
  monotonic = 105.7;
  expect((await store.read(ID)).now).toBe(1_000_100);
});

test('[L-25] a life of the memory store ends when nobody renewed for a lease', async () => {
  let monotonic = 0;
  const { store } = open({ wall: () => 0, monotonic: () => monotonic });
  const life = async () => {
    const reply = await store.take({ ...otherIdentity('t'), spec: 's' });
    return reply.kind === 'starting' ? reply.life : null;
  };
  expect(await life()).toBe('life-1');
  monotonic += POLICY.leaseMs - 1;
  await store.renew([]);
  monotonic += POLICY.leaseMs - 1;
  expect(await life()).toBe('life-1');
  monotonic += 1;
  expect(await life()).toBe('life-2');
});

test('tombstones that tell nothing any more are forgotten', async () => {
  let monotonic = 0;
  const { database, store } = open({ wall: () => 0, monotonic: () => monotonic });
  for (let n = 0; n < 100; n += 1) {
    const { id } = otherIdentity(`t${n}`);
    await store.condemnByIntent(id, C1);
    const snapshot = await store.read(id);
    if (snapshot.kind === 'record') await store.drop(id, snapshot.record.fence, null);
  }
  expect(database.idsAfter(null)).toHaveLength(100);
  const { id } = otherIdentity('t0');
  monotonic += HOUR - 1;
  expect(await store.read(id)).toMatchObject({ kind: 'record' });
  monotonic += 1;
  expect(await store.read(id)).toMatchObject({ kind: 'absent' });
  await store.reassert({ id: asSandboxId('f'.repeat(32)), fence: 1 as Fence, ...foundNothing });
  expect(database.idsAfter(null)).toEqual(['f'.repeat(32)]);
});

const foundNothing = {
  ...{ container: C1, engine: 'e' as never, url: null, since: 0 as Fence },
  ...{ profile: null, userId: null, threadId: null, spec: null, createdAt: null },
};
