import { expect } from 'vitest';
import type { SandboxId } from '../../src/domain/ids.ts';
import {
  C1,
  ENGINE,
  expectAbout,
  ID,
  IDENTITY,
  otherIdentity,
  POLICY,
  type Scene,
  URL1,
} from '../support/lease-harness.ts';
import type { Rule } from './lease-contract.ts';

/** A ready sandbox, held; unheld for so long, if that is given. */
async function ready(s: Scene, thread: string, unheldMs: number | null, user?: string): Promise<SandboxId> {
  const { id, identity } = otherIdentity(thread, user);
  const taken = await s.a.take({ id, identity, spec: 'spec-1' });
  if (taken.kind !== 'starting') throw new Error(taken.kind);
  const { fence } = taken;
  const about = { container: C1, engine: ENGINE, url: URL1, spec: 'spec-1', createdAt: null };
  await s.a.activate({ id, fence, ...about, found: false, since: fence, holdMs: POLICY.holdTtlMs });
  if (unheldMs !== null) {
    await s.a.release(id, fence);
    await s.harness.age(id, unheldMs);
  }
  return id;
}

const idsOf = async (s: Scene, user: string | null = null, limit = 10): Promise<SandboxId[]> =>
  (await s.b.unheld(user, limit)).records.map(({ id }) => id);

export function unheldContract(rule: Rule): void {
  rule('[C-02] what nobody holds is told longest first, whoever owns it', async (s) => {
    const short = await ready(s, 't1', 10_000);
    await ready(s, 't2', null);
    const long = await ready(s, 't3', 30_000);
    const middle = await ready(s, 't4', 20_000);
    await s.starting();
    expect(await idsOf(s)).toEqual([long, middle, short]);
    expect(await idsOf(s, null, 2)).toEqual([long, middle]);
  });

  rule('[C-02] of one user if asked for', async (s) => {
    await ready(s, 't1', 30_000, 'u1');
    const long = await ready(s, 't1', 20_000, 'u2');
    const short = await ready(s, 't2', 10_000, 'u2');
    await ready(s, 't3', null, 'u2');
    expect(await idsOf(s, 'u2')).toEqual([long, short]);
    expect(await idsOf(s, 'u2', 1)).toEqual([long]);
    expect(await idsOf(s, 'u3')).toEqual([]);
  });

  rule('[C-02] one that is held again, removed or anew in its start is not among them', async (s) => {
    const ids = [await ready(s, 't1', 10_000), await ready(s, 't2', 20_000), await ready(s, 't3', 30_000)];
    await s.a.take({ ...otherIdentity('t1'), spec: 'spec-1' });
    await s.a.restart(otherIdentity('t2').id, C1, null);
    const { fence } = await s.record(ids[2]);
    await s.b.claim(otherIdentity('t3').id, fence, { kind: 'capacity' });
    expect(await idsOf(s)).toEqual([]);
  });

  rule('[C-02] what has gone does not stand in the way of what may go', async (s) => {
    const gone = await ready(s, 't1', 30_000);
    const next = await ready(s, 't2', 10_000);
    await s.a.claim(gone, (await s.record(gone)).fence, { kind: 'capacity' });
    expect(await idsOf(s, null, 1)).toEqual([next]);
  });

  rule('[C-02] a hold that ran out, or was never renewed, leaves a sandbox unheld from its end on', async (s) => {
    await s.ready();
    expect(await s.b.unheld(null, 10)).toMatchObject({ records: [] });
    await s.harness.age(ID, POLICY.holdTtlMs + 1_000);
    expect(await idsOf(s)).toEqual([ID]);
    const { fence } = await s.record();
    await s.a.keepalive(ID, fence);
    expect(await idsOf(s)).toEqual([]);
  });

  rule('[C-02] in a new life whoever used it may come back', async (s) => {
    await ready(s, 't1', 10_000);
    await s.harness.endLife();
    await s.a.renew([]);
    expect(await idsOf(s)).toEqual([]);
  });

  rule('[C-03] when the next one will be unheld is told, of the fleet and of a user', async (s) => {
    expect(await s.a.unheld(null, 10)).toMatchObject({ nextAt: null });
    await ready(s, 't1', 10_000);
    expect(await s.a.unheld(null, 10)).toMatchObject({ nextAt: null });
    await s.ready();
    await s.harness.age(ID, 100_000);
    await ready(s, 't3', null, 'u3');
    for (const thread of ['t4', 't5', 't6']) await ready(s, thread, null);
    for (const user of [null, IDENTITY.userId]) {
      const { nextAt, now } = await s.b.unheld(user, 10);
      expectAbout((nextAt ?? 0) - now, POLICY.holdTtlMs - 100_000);
    }
    const { nextAt, now } = await s.b.unheld('u3', 10);
    expectAbout((nextAt ?? 0) - now, POLICY.holdTtlMs);
  });

  rule('[L-17] looking for what is unheld changes nothing', async (s) => {
    await s.unheld();
    await s.expectUnchanged(() => s.b.unheld(null, 10));
    await s.harness.endLife();
    await s.expectUnchanged(() => s.b.unheld(IDENTITY.userId, 10));
  });
}
