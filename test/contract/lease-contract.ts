import { describe, test } from 'vitest';
import type { LeasePolicy } from '../../src/leases/lease-store.ts';
import { type MakeHarness, POLICY, Scene } from '../support/lease-harness.ts';
import { acquireContract } from './lease-contract-acquire.ts';
import { capacityContract } from './lease-contract-capacity.ts';
import { censusContract } from './lease-contract-census.ts';
import { claimContract } from './lease-contract-claim.ts';
import { confirmContract } from './lease-contract-confirm.ts';
import { holdsContract } from './lease-contract-holds.ts';
import { intentContract } from './lease-contract-intent.ts';
import { lifeContract } from './lease-contract-life.ts';
import { newsContract } from './lease-contract-news.ts';
import { ownerContract } from './lease-contract-owner.ts';
import { readsContract } from './lease-contract-reads.ts';
import { recordsContract } from './lease-contract-records.ts';
import { repeatContract } from './lease-contract-repeat.ts';
import { restartContract } from './lease-contract-restart.ts';
import { sparesContract } from './lease-contract-spares.ts';
import { unheldContract } from './lease-contract-unheld.ts';
import { writesContract } from './lease-contract-writes.ts';

/** A test in a deployment of its own. */
export type Rule = (title: string, body: (scene: Scene) => Promise<void>, policy?: Partial<LeasePolicy>) => void;

export const rulesOn =
  (makeHarness: MakeHarness): Rule =>
  (title, body, policy = {}) => {
    test(title, async () => {
      const harness = await makeHarness({ ...POLICY, ...policy });
      try {
        await body(new Scene(harness));
      } finally {
        await harness.close();
      }
    });
  };

/** What every lease store promises, whatever keeps its records. */
export function leaseContract(name: string, makeHarness: MakeHarness): void {
  const rule = rulesOn(makeHarness);
  describe(`lease store contract: ${name}`, () => {
    describe('acquire', () => acquireContract(rule));
    describe('restart and residue', () => restartContract(rule));
    describe('holds', () => holdsContract(rule));
    describe('claim', () => claimContract(rule));
    describe('explicit destroy', () => intentContract(rule));
    describe('confirm and after', () => confirmContract(rule));
    describe('owner', () => ownerContract(rule));
    describe('life', () => lifeContract(rule));
    describe('records', () => recordsContract(rule));
    describe('reads', () => readsContract(rule));
    describe('capacity', () => capacityContract(rule));
    describe('what runs', () => censusContract(rule));
    describe('what is unheld', () => unheldContract(rule));
    describe('news', () => newsContract(rule));
    describe('spares', () => sparesContract(rule));
    describe('what is written', () => writesContract(rule));
    describe('sent again', () => repeatContract(rule));
  });
}
