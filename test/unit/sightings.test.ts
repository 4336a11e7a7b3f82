import { expect, test } from 'vitest';
import { RemovalBackoff } from '../../src/lifecycle/removal-backoff.ts';
import { Sightings } from '../../src/lifecycle/sightings.ts';
import { C1, C2 } from '../support/lease-harness.ts';

test('[T-16] a suspicion lasts from the pass that saw it first, and counts from the second one on', () => {
  const sightings = new Sightings();
  sightings.note(new Map([[C1, 'stray']]), 1_000);
  expect(sightings.lasting(C1, 5_000)).toBeNull();
  sightings.note(new Map([[C1, 'stray']]), 6_000);
  expect(sightings.lasting(C1, 6_000)).toBe(5_000);
  expect(sightings.lasting(C2, 6_000)).toBeNull();
});

test('[T-16] another suspicion, or none in between, begins anew', () => {
  const sightings = new Sightings();
  sightings.note(new Map([[C1, 'dead']]), 1_000);
  sightings.note(new Map([[C1, 'stray']]), 2_000);
  expect(sightings.lasting(C1, 2_000)).toBeNull();
  sightings.note(new Map([[C1, 'stray']]), 3_000);
  expect(sightings.lasting(C1, 3_000)).toBe(1_000);
  sightings.note(new Map(), 4_000);
  expect(sightings.size).toBe(0);
  sightings.note(new Map([[C1, 'stray']]), 5_000);
  expect(sightings.lasting(C1, 5_000)).toBeNull();
});

test('[T-09] an interruption makes the wait for an owner begin anew, and no other one', () => {
  const sightings = new Sightings();
  sightings.note(new Map([[C1, 'unowned'] as const, [C2, 'condemned'] as const]), 1_000);
  sightings.interrupted();
  expect(sightings.size).toBe(1);
  sightings.note(new Map([[C1, 'unowned'] as const, [C2, 'condemned'] as const]), 2_000);
  expect(sightings.lasting(C1, 2_000)).toBeNull();
  expect(sightings.lasting(C2, 2_000)).toBe(1_000);
});

test('[T-11] the pause after each failed removal is twice as long, ten minutes at most, until one succeeds', () => {
  const backoff = new RemovalBackoff(30_000);
  expect(backoff.mayTry(C1, 0)).toBe(true);
  for (const pause of [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
    backoff.failed(C1, 1_000);
    expect(backoff.mayTry(C1, 1_000 + pause - 1)).toBe(false);
    expect(backoff.mayTry(C1, 1_000 + pause)).toBe(true);
  }
  expect(backoff.mayTry(C2, 0)).toBe(true);
  backoff.succeeded(C1);
  backoff.failed(C1, 0);
  expect(backoff.mayTry(C1, 30_000)).toBe(true);
});

test('[T-11] a container that is not there any more is forgotten', () => {
  const backoff = new RemovalBackoff(30_000);
  for (const container of [C1, C2]) backoff.failed(container, 0);
  backoff.keepOnly(new Set([C2]));
  expect(backoff.mayTry(C1, 0)).toBe(true);
  expect(backoff.mayTry(C2, 0)).toBe(false);
});
