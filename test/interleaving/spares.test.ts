import { expect, test } from 'vitest';
import { Campaign, REPLAYED, searchAll } from './campaign.ts';
import { sparedPairs } from './meetings.ts';
import { ONE_FAULT } from './sample.ts';

const CALM_MS = 15_000;
const FAULTY_MS = 25_000;
const NO_FAULT = { disaster: 0, expiry: 0, crash: 0, leaving: 0, all: 0 };

/** With INTERLEAVING_SEED one schedule is replayed, in replay.test.ts, and nothing else is run. */
const meetings = REPLAYED === null ? sparedPairs() : [];

test('[C-05] any two operations where a spare waits, with up to three preemptions', async () => {
  const campaign = new Campaign('spares, three preemptions');
  const bounds = { preemptions: 3, faults: 0 } as const;
  await searchAll(campaign, meetings, { bounds, limits: { preemptions: 3, faults: NO_FAULT }, withinMs: CALM_MS });
  expect(await campaign.told()).toBe('');
}, 600_000);

test('[C-05] the same with up to two preemptions and one fault at each step', async () => {
  const campaign = new Campaign('spares, two preemptions, one fault');
  const bounds = { preemptions: 2, faults: 1 } as const;
  await searchAll(campaign, meetings, { bounds, limits: { preemptions: 2, faults: ONE_FAULT }, withinMs: FAULTY_MS });
  expect(await campaign.told()).toBe('');
}, 600_000);
