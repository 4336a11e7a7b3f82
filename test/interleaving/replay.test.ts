import { expect, test } from 'vitest';
import { REPLAYED } from './campaign.ts';
import { parseMeeting } from './describe.ts';
import { SEVERAL_FAULTS, sample, seeded, tripleOf } from './sample.ts';
import { replay } from './search.ts';

/** `warm acquire@a+reap@b 0.0.1.1`, as it was printed, or the seed of a triple. */
async function repeat(text: string): Promise<{ readonly trace: readonly string[]; readonly violation: string | null }> {
  if (/^\d+$/.test(text)) {
    const random = seeded(Number(text));
    const meeting = tripleOf(random);
    const { schedule } = await sample(meeting, random, { preemptions: null, faults: SEVERAL_FAULTS });
    return replay(meeting, schedule);
  }
  const at = text.lastIndexOf(' ');
  return replay(parseMeeting(text.slice(0, at)), text.slice(at + 1));
}

test.for(['warm acquire@a+reap@a 1.1.1.0.0.1.1', 'active renew@a+acquire@b loss.1.1.0', '1', '77'])(
  'the schedule %s is the same each time it is run',
  async (text) => {
    const [first, second] = [await repeat(text), await repeat(text)];
    expect(second.trace).toEqual(first.trace);
    expect(first.trace.length).toBeGreaterThan(5);
  },
);

test('the schedule of INTERLEAVING_SEED, step by step', async () => {
  if (REPLAYED === null) return;
  const { trace, violation } = await repeat(REPLAYED);
  process.stdout.write(`${trace.join('\n')}\n`);
  expect(violation).toBe(null);
});
