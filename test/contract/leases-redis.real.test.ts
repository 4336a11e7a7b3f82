import type { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { RedisServer } from '../support/redis.ts';
import { leaseContract } from './lease-contract.ts';
import { redisHarness } from './lease-contract-redis.ts';

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  client = server.client();
});
afterAll(async () => {
  client.disconnect();
  await server[Symbol.asyncDispose]();
});

leaseContract('redis', async (policy) => redisHarness(server, client, policy));
