import { randomUUID } from 'node:crypto';

/** What a process of the bench is told in its environment. */
export interface Surroundings {
  readonly redisUrl: string;
  readonly dockerHost: string;
}

export function surroundings(): Surroundings {
  const redisUrl = process.env.REDIS_URL;
  const dockerHost = process.env.DOCKER_HOST;
  if (redisUrl === undefined || dockerHost === undefined) {
    throw new Error('REDIS_URL and DOCKER_HOST name the services to measure on: start this with npm run bench');
  }
  return { redisUrl, dockerHost };
}

/** Of one run, so that nothing of two runs meets. */
export const newDeployment = (): string => `bench-${randomUUID().slice(0, 8)}`;

export interface ServerSettings {
  readonly deployment: string;
  readonly spares?: number;
  readonly parallelStarts?: number;
  readonly idleTimeout?: string;
}

/** The configuration of a measured broker: the defaults, but for what a run on one machine needs. */
export function brokerYaml({
  deployment,
  spares = 0,
  parallelStarts = 4,
  idleTimeout = '10m',
}: ServerSettings): string {
  return JSON.stringify({
    deployment,
    server: { port: 0 },
    store: { type: 'redis', url: surroundings().redisUrl },
    idle: { timeout: idleTimeout, checkInterval: '1s' },
    reconcile: { interval: '2s' },
    acquire: { parallelStarts },
    capacity: { max: 1000 },
    runtime: { docker: { namePrefix: deployment } },
    shutdown: { sandboxes: 'keep' },
    profiles: { default: { pull: 'never', spares, resources: { memory: '128MiB' } } },
  });
}
