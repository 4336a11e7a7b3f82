import { describe, expect } from 'vitest';
import { type Fence, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { C1, C2, expectAbout, HOUR, ID, type MakeHarness, otherIdentity, POLICY } from '../support/lease-harness.ts';
import { rulesOn } from './lease-contract.ts';

const idleNow = { kind: 'idle', unheldMs: 0 } as const;
const MINUTE = 60_000;

/** The edges of the store's rules: what tells each of them from a rule that is almost the same. */
export function leaseEdges(name: string, makeHarness: MakeHarness): void {
  const rule = rulesOn(makeHarness);
  describe(`edges of the lease store: ${name}`, () => {
    rule('[L-05] an identity whose id is another one is refused where nothing is known, too', async (s) => {
      const { identity } = otherIdentity('t2');
      const wrong = s.a.take({ id: ID, identity, spec: 'spec-1' });
      await expect(wrong).rejects.toMatchObject({ code: 'identity_mismatch' });
      expect(await s.harness.dump(ID)).toBeNull();
    });

    rule('[L-31] naming the residue begins the lease of its start anew', async (s) => {
      const { fence } = await s.starting();
      await s.expire(POLICY.leaseMs - 10_000);
      await s.a.residue(ID, fence, C1);
      expectAbout((await s.record()).expiresAt, (await s.now()) + POLICY.leaseMs);
    });

    rule('[L-08] the release of a hold that ran out leaves the idle clock where its end was', async (s) => {
      const { fence } = await s.ready();
      await s.expire(POLICY.holdTtlMs + 5 * MINUTE);
      await s.a.renew([{ id: ID, fence }]);
      await s.expectUnchanged(() => s.a.release(ID, fence));
      expect(await s.a.claim(ID, fence, { kind: 'idle', unheldMs: 4 * MINUTE })).toMatchObject({ fence });
    });

    rule('[L-26] a hold that ran out leaves its end behind when a later one is released', async (s) => {
      const { fence } = await s.ready();
      await s.expire(POLICY.holdTtlMs + 5 * MINUTE);
      await s.take();
      expectAbout((await s.record()).idleSince, (await s.now()) - 5 * MINUTE);
      expect((await s.record()).holds.has(fence)).toBe(false);
    });

    rule('[L-25] a refused operation writes down that the record is of a new life', async (s) => {
      const { fence } = await s.unheld();
      await s.harness.endLife();
      const before = await s.harness.dump(ID);
      expect(await s.a.claim(ID, fence, idleNow)).toBe('refused');
      expect(await s.harness.dump(ID)).not.toBe(before);
    });

    rule('[L-25] a handover and a renewal that touch nothing write that down as well', async (s) => {
      await s.unheld(s.b);
      for (const act of [() => s.a.handover([ID]), () => s.a.renew([{ id: ID, fence: 1 as Fence }])]) {
        await s.harness.endLife();
        const before = await s.harness.dump(ID);
        await act();
        expect(await s.harness.dump(ID)).not.toBe(before);
        expect((await s.record()).holds.has(UNKNOWN_HOLD)).toBe(true);
      }
    });

    rule('[L-07] the container of a restart stays its residue, and no other one is', async (s) => {
      await s.ready();
      const reply = await s.a.restart(ID, C1, null);
      expect(reply).toMatchObject({ residue: C1, record: { state: 'starting', verified: false, url: null } });
      expect((await s.record()).holds.size).toBe(0);
      expect(await s.a.restart(ID, C2, null)).toBe('moved');
    });

    rule('[L-01] a fence exceeds every one ever given, also after a record of a smaller one was written', async (s) => {
      const huge = (Number.MAX_SAFE_INTEGER - 1000) as Fence;
      await s.a.reassert({ ...s.found(), id: otherIdentity('t2').id, fence: huge });
      await s.a.confirm({
        kind: 'teardown',
        id: otherIdentity('t3').id,
        fence: 77 as Fence,
        container: C1,
        engine: null,
      });
      expect((await s.starting()).fence).toBeGreaterThan(huge + 1);
    });

    rule('[L-15] what is started over a tombstone does not end with it', async (s) => {
      await s.tombstone();
      await s.take();
      await s.expire(2 * HOUR);
      expect(await s.state()).toBe('starting');
    });

    rule('[L-31] a start is nothing to be replaced', async (s) => {
      const { fence } = await s.starting();
      expect(await s.expectUnchanged(() => s.a.claim(ID, fence, { kind: 'replace' }))).toBe('refused');
    });

    rule('[L-11] an unsettled one gets a new fence, also from its owner', async (s) => {
      const { fence } = await s.starting();
      await s.a.activate(s.activation(fence, true));
      const claim = await s.a.claim(ID, fence, { kind: 'unsettled', container: C1 });
      expect(claim).toMatchObject({ container: C1 });
      expect((await s.record()).fence).toBeGreaterThan(fence);
    });
  });
}
