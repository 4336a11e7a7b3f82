import { expect, test } from 'vitest';
import { Campaign, REPLAYED } from './campaign.ts';
import { SEVERAL_FAULTS, seeded, tripleOf } from './sample.ts';

const STEPS = REPLAYED === null ? 300_000 : 0;
const FIRST_SEED = 1;

test('[T-02] [T-18] any three operations, several faults, schedules from seeds', async () => {
  const campaign = new Campaign('triples');
  let seed = FIRST_SEED;
  for (; campaign.steps < STEPS && !campaign.over; seed += 1) {
    const random = seeded(seed);
    await campaign.sample(tripleOf(random), random, { preemptions: null, faults: SEVERAL_FAULTS });
  }
  campaign.say(`${campaign.summary()}. Seeds ${FIRST_SEED}-${seed - 1}, ${campaign.steps} steps.`);
  expect(await campaign.told()).toBe('');
}, 600_000);
