import { useRedis } from '../support/redis-stores.ts';
import { leaseContract } from './lease-contract.ts';
import { redisHarness } from './lease-contract-redis.ts';

const redis = useRedis('the file');

leaseContract('redis', async (policy) => redisHarness(redis.server, redis.client, policy));
