import { expect, test } from 'vitest';
import { Campaign, REPLAYED, searchAll } from './campaign.ts';
import { pairs } from './meetings.ts';
import { ONE_FAULT } from './sample.ts';

/** All of this folder takes at most five minutes of one core. */
const CALM_MS = 90_000;
const FAULTY_MS = 80_000;
const NO_FAULT = { disaster: 0, expiry: 0, crash: 0, leaving: 0, all: 0 };

/** With INTERLEAVING_SEED one schedule is replayed, in replay.test.ts, and nothing else is run. */
const meetings = REPLAYED === null ? pairs() : [];

test('[T-02] any two operations of two replicas, from any start, with up to three preemptions', async () => {
  const campaign = new Campaign('pairs, three preemptions');
  const bounds = { preemptions: 3, faults: 0 } as const;
  await searchAll(campaign, meetings, { bounds, limits: { preemptions: 3, faults: NO_FAULT }, withinMs: CALM_MS });
  expect(await campaign.told()).toBe('');
}, 600_000);

test('[T-02] [T-18] [A-13] the same with up to two preemptions and one fault at each step', async () => {
  const campaign = new Campaign('pairs, two preemptions, one fault');
  const bounds = { preemptions: 2, faults: 1 } as const;
  await searchAll(campaign, meetings, { bounds, limits: { preemptions: 2, faults: ONE_FAULT }, withinMs: FAULTY_MS });
  expect(await campaign.told()).toBe('');
}, 600_000);
