import Docker from 'dockerode';
import { Redis } from 'ioredis';

/**
 * Tells by its exit code whether a service answers: `answers.ts engine` (the one of DOCKER_HOST), or `answers.ts redis
 * URL`. Prints why not.
 */
const DEADLINE_MS = 5_000;

async function engine(): Promise<void> {
  await new Docker({ timeout: DEADLINE_MS }).ping();
}

async function redis(url: string): Promise<void> {
  const client = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    connectTimeout: DEADLINE_MS,
    commandTimeout: DEADLINE_MS,
    retryStrategy: null,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.disconnect();
  }
}

const [what, url = ''] = process.argv.slice(2);
// An engine that dies in the middle of a reply leaves a call unsettled for ever.
setTimeout(() => process.exit(1), 2 * DEADLINE_MS).unref();
try {
  await (what === 'engine' ? engine() : redis(url));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
