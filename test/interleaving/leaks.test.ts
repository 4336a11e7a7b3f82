import { expect, test } from 'vitest';
import { liveThrough } from './mishaps.ts';
import { seeded } from './sample.ts';

const SEEDS = Number(process.env.LEAK_SEEDS ?? 300);
const FIRST = Number(process.env.LEAK_FIRST ?? 0);

test('[A-11] [T-11] whatever fails once, is lost or crashes: in the end no container, record, slot or task is left', {
  timeout: 60_000 + 1_000 * SEEDS,
}, async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const { told, left } = await liveThrough(seeded(seed));
    expect(left, `LEAK_FIRST=${seed} LEAK_SEEDS=1: ${told.join(', ')}`).toEqual([]);
  }
});
