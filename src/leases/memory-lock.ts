import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Another broker on this host keeps the same deployment in memory. */
export class DeploymentTaken extends Error {
  constructor(deployment: string) {
    super(
      `Another broker on this host runs deployment "${deployment}" with the memory store, which cannot see peers. ` +
        'Stop it, give this one another deployment, or let both use Redis (store.url).',
    );
    this.name = 'DeploymentTaken';
  }
}

/**
 * Two memory stores of one deployment on one host would each take the other's containers for orphans. A listening
 * socket is the lock: it ends with its process, however that ends, and on Linux (abstract name) leaves no file.
 * Rejects with `DeploymentTaken`.
 */
export async function lockDeployment(
  deployment: string,
  platform = process.platform,
): Promise<{ release(): Promise<void> }> {
  const name = `sandbox-broker-memory-${deployment}`;
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') throw new DeploymentTaken(deployment);
    throw error;
  }
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, () => resolve());
  });
}
