import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import Docker from 'dockerode';
import type { Clock } from '../../src/domain/timing.ts';
import type { DockerConnection } from '../../src/runtime/docker-daemon.ts';
import type { DockerRuntimeOptions } from '../../src/runtime/docker-options.ts';
import { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { LABEL } from '../../src/runtime/labels.ts';
import { onlyFileOf, type TarEntry, tarOf } from './tar.ts';

/** The engine of DOCKER_HOST, or the one that is usually there. */
export function dockerConnection(): DockerConnection {
  const address = process.env.DOCKER_HOST;
  if (address === undefined || address === '') return { socketPath: '/var/run/docker.sock' };
  if (address.startsWith('unix://')) return { socketPath: address.slice('unix://'.length) };
  const { hostname, port } = new URL(address);
  return { host: hostname, port: Number(port) };
}

/** A client for what tests do behind the broker's back. */
export function dockerClient(): Docker {
  return new Docker(dockerConnection());
}

export const realClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  pause: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** A deployment name that no other test has. */
export function newDeployment(about: string): string {
  return `test-${about}-${randomBytes(4).toString('hex')}`;
}

/**
 * What the image of `buildTinyImage` does is told by its environment: MODE=serve (the default) answers
 * `/v1/sandbox` with 200, MODE=silent runs and answers nothing, MODE=exit says a few lines and ends with code 3,
 * MODE=hungry takes memory without end, MODE=stubborn does not stop when it is asked to.
 */
const ENTRY = `#!/bin/busybox sh
trap 'exit 0' TERM
case "\${MODE:-serve}" in
  serve) exec busybox httpd -f -p 8080 -h /www ;;
  exit) i=1; while [ $i -le 30 ]; do echo "line $i $WORDS"; i=$((i+1)); done; exit 3 ;;
  hungry) exec busybox tail /dev/zero ;;
  stubborn) trap '' TERM; while :; do busybox sleep 1; done ;;
  *) while :; do busybox sleep 1; done ;;
esac
`;

export interface TinyImage extends AsyncDisposable {
  readonly name: string;
}

/** The static busybox of the project's own sandbox image, so that the machine itself needs none. */
async function busyboxOf(docker: Docker): Promise<Buffer> {
  const container = await docker.createContainer({ Image: 'sandbox-broker/sandbox:local' });
  try {
    const archive = await container.getArchive({ path: '/usr/bin/busybox' });
    const chunks: Buffer[] = [];
    for await (const chunk of archive as unknown as AsyncIterable<Buffer>) chunks.push(chunk);
    return onlyFileOf(Buffer.concat(chunks));
  } finally {
    await container.remove({ force: true });
  }
}

/** What an image of busybox and little else is made of, as an archive. */
export async function tinyFileSystem(more: readonly TarEntry[] = []): Promise<Buffer> {
  const busybox = await busyboxOf(dockerClient());
  return tarOf([
    { path: 'bin/busybox', content: busybox, mode: 0o755 },
    { path: 'bin/sh', link: '/bin/busybox' },
    { path: 'entry', content: ENTRY, mode: 0o755 },
    { path: 'www/v1/sandbox', content: '{"ok":true}\n' },
    { path: 'tmp/', mode: 0o1777 },
    ...more,
  ]);
}

/** An image of that, imported through the API; removed when disposed. */
export async function buildTinyImage(more: readonly TarEntry[] = []): Promise<TinyImage> {
  const docker = dockerClient();
  const tar = await tinyFileSystem(more);
  const tag = randomBytes(6).toString('hex');
  const repo = 'sandbox-broker-test/tiny';
  const changes = ['ENTRYPOINT ["/entry"]', 'ENV PATH=/bin'];
  const stream = await docker.importImage(Readable.from([tar]) as never, { repo, tag, changes } as never);
  for await (const _ of stream as unknown as AsyncIterable<Buffer>);
  const name = `${repo}:${tag}`;
  return {
    name,
    async [Symbol.asyncDispose]() {
      await docker.getImage(name).remove({ force: true });
    },
  };
}

/** The real adapter with settings for tests. */
export function dockerRuntime(
  changes: Partial<DockerRuntimeOptions> & Pick<DockerRuntimeOptions, 'deployment' | 'profiles'>,
): DockerRuntime {
  return new DockerRuntime({
    namePrefix: 'sbtest',
    connection: dockerConnection(),
    timeoutMs: 20_000,
    stopGraceMs: 1_000,
    address: 'published',
    network: null,
    advertiseHost: '127.0.0.1',
    bindHost: '127.0.0.1',
    probeHost: null,
    clock: realClock,
    newId: randomUUID,
    emit: () => undefined,
    ...changes,
  });
}

const labelled = (deployment: string): { label: string[] } => ({ label: [`${LABEL.deployment}=${deployment}`] });

/** What a deployment has left in the engine. The network and the volume that a deployment keeps count too. */
export async function leftovers(
  deployment: string,
): Promise<{ readonly containers: string[]; readonly networks: string[]; readonly volumes: string[] }> {
  const docker = dockerClient();
  const filters = labelled(deployment);
  const containers = await docker.listContainers({ all: true, filters });
  const networks = await docker.listNetworks({ filters });
  const { Volumes } = await docker.listVolumes({ filters });
  return {
    containers: containers.map(({ Id }) => Id),
    networks: networks.map(({ Id }) => Id),
    volumes: (Volumes ?? []).map(({ Name }) => Name),
  };
}

/** Removes everything that a test's deployment has left, and says what containers there were. */
export async function sweep(deployment: string): Promise<string[]> {
  const docker = dockerClient();
  const { containers, networks, volumes } = await leftovers(deployment);
  for (const id of containers) await docker.getContainer(id).remove({ force: true, v: true }).catch(ignoreMissing);
  for (const id of networks) await docker.getNetwork(id).remove().catch(ignoreMissing);
  for (const name of volumes) await docker.getVolume(name).remove().catch(ignoreMissing);
  return containers;
}

function ignoreMissing(error: { statusCode?: number }): void {
  if (error.statusCode !== 404 && error.statusCode !== 409) throw error;
}

/** Asks until `check` gives something; a test's bounded wait for what happens outside of it. */
export async function eventually<T>(check: () => Promise<T | null | false>, limitMs = 10_000): Promise<T> {
  const end = performance.now() + limitMs;
  for (;;) {
    const value = await check();
    if (value !== null && value !== false) return value;
    if (performance.now() > end) throw new Error(`did not happen within ${limitMs} ms`);
    await realClock.pause(20);
  }
}
