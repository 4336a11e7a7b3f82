import { expect } from 'vitest';
import { asEngineMark, asSandboxId, type SandboxId } from '../../src/domain/ids.ts';
import { C1, ENGINE, HOUR, ID, otherIdentity } from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

export function readsContract(rule: Rule): void {
  rule('[L-17] reads change nothing of any record, also not a lifetime', async (s) => {
    const readAll = async () => {
      await s.b.read(ID);
      await s.b.readMany([ID, ID]);
      await s.b.page(null, 10);
    };
    await s.expectUnchanged(readAll);
    await s.ready(s.a);
    await s.expectUnchanged(readAll);
    await s.expire(HOUR);
    await s.expectUnchanged(readAll);
    await s.b.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: null, logTail: '' });
    await s.expectUnchanged(readAll);
  });

  rule('[L-17] reads do not keep a life going', async (s) => {
    const { life } = await s.starting();
    await s.harness.ageLife(25_000);
    await s.a.read(ID);
    await s.a.page(null, 1);
    await s.harness.ageLife(5_000);
    expect((await s.starting()).life).not.toBe(life);
  });

  rule('[L-17] an unknown id is absent, at the time of the store', async (s) => {
    const snapshot = await s.a.read(ID);
    expect(snapshot).toEqual({ kind: 'absent', id: ID, now: expect.any(Number) });
    expect(Number.isInteger(snapshot.now)).toBe(true);
  });

  rule('[L-17] readMany answers in the order asked, each id as read does', async (s) => {
    await s.ready(s.a);
    const other = otherIdentity('t2').id;
    const [first, second, third] = await s.b.readMany([other, ID, other]);
    expect(first).toMatchObject({ kind: 'absent', id: other });
    expect(second).toMatchObject({ kind: 'record', id: ID, record: await s.record() });
    expect(third).toMatchObject({ kind: 'absent', id: other });
    expect(await s.b.readMany([])).toEqual([]);
  });

  rule('[L-17] readMany takes any number of ids', async (s) => {
    await s.ready(s.a);
    const ids = Array.from({ length: 450 }, (_, n) => (n === 449 ? ID : asSandboxId(`${n}`.padStart(32, '0'))));
    const snapshots = await s.a.readMany(ids);
    expect(snapshots.map(({ id }) => id)).toEqual(ids);
    expect(snapshots.filter(({ kind }) => kind === 'record')).toHaveLength(1);
  });

  rule('[L-17] pages go through all records in the order of their ids, whoever owns them', async (s) => {
    const ids: SandboxId[] = [];
    for (let n = 0; n < 7; n += 1) {
      const other = otherIdentity(`t${n}`);
      await (n % 2 === 0 ? s.a : s.b).take({ ...other, spec: 'spec-1' });
      ids.push(other.id);
    }
    ids.sort();
    const seen: SandboxId[] = [];
    let after: SandboxId | null = null;
    let pages = 0;
    do {
      const { items, next }: Awaited<ReturnType<typeof s.b.page>> = await s.b.page(after, 3);
      expect(items.length).toBeLessThanOrEqual(3);
      seen.push(...items.map(({ id }) => id));
      after = next;
      pages += 1;
    } while (after !== null);
    expect(seen).toEqual(ids);
    expect(pages).toBe(3);
  });

  rule('[L-17] a page that ends with the last record has none after it', async (s) => {
    await s.ready(s.a);
    expect(await s.a.page(null, 1)).toMatchObject({ items: [{ id: ID }], next: null });
    expect(await s.a.page(ID, 1)).toEqual({ items: [], next: null });
    expect(await s.a.page(asSandboxId(`${ID.slice(0, 31)}\u0000`), 1)).toMatchObject({ items: [{ id: ID }] });
  });

  rule('[L-17] pages show tombstones as long as they tell why, then nothing', async (s) => {
    await s.ready();
    await s.a.end(ID, C1, { endedAt: 1, reason: 'x', exitCode: null, logTail: '' });
    await s.expire(HOUR - 60_000);
    expect((await s.a.page(null, 10)).items).toMatchObject([{ id: ID, record: { state: 'gone' } }]);
    await s.expire(60_000);
    expect((await s.a.page(null, 10)).items).toEqual([]);
    await s.starting();
    expect((await s.a.page(null, 10)).items).toMatchObject([{ id: ID, record: { state: 'starting' } }]);
  });

  rule('[L-17] records that have ended do not shorten a page', async (s) => {
    const ids: SandboxId[] = [];
    for (let n = 0; n < 6; n += 1) {
      const { id } = otherIdentity(`t${n}`);
      await s.a.adopt({ id, container: s.found() });
      ids.push(id);
    }
    ids.sort();
    for (const id of ids.slice(0, 4)) {
      await s.a.end(id, C1, { endedAt: 1, reason: 'x', exitCode: null, logTail: '' });
      await s.harness.age(id, HOUR);
    }
    expect(await s.a.page(null, 1)).toMatchObject({ items: [{ id: ids[4] }], next: ids[4] });
    expect(await s.a.page(ids[4]!, 1)).toMatchObject({ items: [{ id: ids[5] }], next: null });
  });

  rule('[L-17] the first engine is remembered; another one is told which', async (s) => {
    expect(await s.a.settleEngine(ENGINE)).toBe(ENGINE);
    expect(await s.b.settleEngine(asEngineMark('engine-2'))).toBe(ENGINE);
    expect(await s.a.settleEngine(ENGINE)).toBe(ENGINE);
  });

  rule('[L-17] a handle that was closed answers nothing more; others go on', async (s) => {
    await s.a.ping();
    await s.a.close();
    await s.a.close();
    const calls = [() => s.a.ping(), () => s.a.read(ID), () => s.take(), () => s.a.renew([]), () => s.a.handover([ID])];
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ code: 'store_unavailable' });
    }
    await s.b.ping();
    expect(await s.take(s.b)).toMatchObject({ kind: 'starting' });
  });
}
