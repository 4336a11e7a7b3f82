import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasCode } from '../../src/domain/errors.ts';
import { type LeaseHarness, memoryHarness, POLICY } from '../support/lease-harness.ts';
import { useRedis } from '../support/redis-stores.ts';
import { type Command, commands, Player } from './lease-contract-commands.ts';
import { redisHarness } from './lease-contract-redis.ts';

const redis = useRedis('the file');

const policy = { ...POLICY, maxSandboxes: 2, maxPerUser: 1 };

/** What one store answers to a sequence, an error by its code, and what all records are in the end. */
async function answers(sequence: readonly Command[], harness: LeaseHarness): Promise<readonly unknown[]> {
  const player = new Player(harness);
  try {
    const seen: unknown[] = [];
    await player.begin();
    for (const command of sequence) {
      try {
        seen.push(await player.play(command));
      } catch (error) {
        if (!hasCode(error, 'record_unreadable', 'identity_mismatch')) throw error;
        seen.push(error.code);
      }
    }
    return [...seen, await player.everything()];
  } finally {
    await harness.close();
  }
}

test('[L-20] any sequence of operations gives the same answers on memory and on Redis', async () => {
  const same = fc.asyncProperty(fc.array(commands, { maxLength: 40, size: 'max' }), async (sequence) => {
    const onRedis = await answers(sequence, redisHarness(redis.server, redis.client, policy));
    expect(onRedis).toEqual(await answers(sequence, await memoryHarness(policy)));
  });
  await fc.assert(same, { numRuns: 300 });
}, 120_000);
