import type { Profile } from '../../src/domain/profile.ts';

/** A small profile; on the image of `buildTinyImage` its containers answer the readiness path. */
export function tinyProfile(image: string, changes: Partial<Profile> = {}): Profile {
  return {
    name: 'default',
    image,
    pull: 'never',
    registryAuth: null,
    onSpecChange: 'keep',
    port: 8080,
    readiness: { path: '/v1/sandbox', timeoutMs: 20_000 },
    environment: {},
    mounts: [],
    resources: { memoryBytes: 64 * 1024 * 1024, cpus: 1, pids: 64, shmBytes: 16 * 1024 * 1024 },
    security: { readOnlyRoot: false, capAdd: [], seccomp: 'default', runtime: null },
    spares: 0,
    ...changes,
  };
}
