import Docker from 'dockerode';
import { Redis } from 'ioredis';
import { messageOf } from '../src/domain/errors.ts';
import { say } from './report.ts';
import { surroundings } from './settings.ts';

/** Removes what runs of the bench have left in engine and store, also those that were cut short. */
export async function cleanUp(): Promise<void> {
  const docker = new Docker();
  const isOurs = (labels: Readonly<Record<string, string>> | undefined): boolean =>
    /^bench-[0-9a-f]{8}$/.test(labels?.['sandbox-broker.deployment'] ?? labels?.['sandbox-broker.bench'] ?? '');
  for (const { Id, Labels } of await docker.listContainers({ all: true })) {
    if (isOurs(Labels)) await told(docker.getContainer(Id).remove({ force: true, v: true }));
  }
  for (const { Id, Labels } of await docker.listNetworks()) {
    if (isOurs(Labels)) await told(docker.getNetwork(Id).remove());
  }
  for (const { Name, Labels } of (await docker.listVolumes()).Volumes) {
    if (isOurs(Labels)) await told(docker.getVolume(Name).remove());
  }
  const redis = new Redis(surroundings().redisUrl);
  for (const pattern of ['sandbox-broker:{bench-*', 'bench:{bench-*']) {
    for await (const keys of redis.scanStream({ match: pattern, count: 1_000 }) as AsyncIterable<string[]>) {
      if (keys.length > 0) await redis.unlink(...keys);
    }
  }
  redis.disconnect();
}

/** One thing that cannot be removed keeps nothing else. */
async function told(removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: unknown) => say(`left behind: ${messageOf(error)}`));
}
