import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import type { Mount, Profile } from '../domain/profile.ts';

/** Part of the hash, so that a change in what this file makes of a profile counts as a change of the profile. */
const SPEC_FORMAT = 1;
/** What a sandbox writes to its output is bounded on the host's disk, and readable whatever the engine's default is. */
const LOGS = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '1' } };

export interface ContainerSpecParts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly profile: Profile;
  /** Name or id of the network to put it on. */
  readonly network: string;
  /** The host's address on which its port is published, by a number that the engine chooses; null: not at all. */
  readonly bindHost: string | null;
}

export type ContainerSpec = { readonly name: string; readonly body: Docker.ContainerCreateOptions };

/** What is asked of the engine for one container. Nothing of it comes from a client. */
export function containerSpec({ name, labels, profile, network, bindHost }: ContainerSpecParts): ContainerSpec {
  const port = `${profile.port}/tcp`;
  const { resources, security } = profile;
  return {
    name,
    body: {
      Image: profile.image,
      Env: Object.entries(profile.environment).map(([key, value]) => `${key}=${value}`),
      Labels: { ...labels },
      ExposedPorts: { [port]: {} },
      HostConfig: {
        AutoRemove: false,
        CapAdd: [...security.capAdd],
        CapDrop: ['ALL'],
        Init: true,
        LogConfig: LOGS,
        Memory: resources.memoryBytes,
        MemorySwap: resources.memoryBytes,
        Mounts: profile.mounts.map(mountOf),
        NanoCpus: Math.round(resources.cpus * 1e9),
        NetworkMode: network,
        PidsLimit: resources.pids,
        PortBindings: bindHost === null ? {} : { [port]: [{ HostIp: bindHost, HostPort: '' }] },
        Privileged: false,
        PublishAllPorts: false,
        ReadonlyRootfs: security.readOnlyRoot,
        RestartPolicy: { Name: 'no' },
        SecurityOpt: securityOptions(security.seccomp),
        ShmSize: resources.shmBytes,
        Tmpfs: temporaryFolders(profile),
        ...(security.runtime === null ? {} : { Runtime: security.runtime }),
      },
    },
  };
}

/**
 * Says when two profiles make different containers: 16 hex digits over image, port, environment, mounts, resources
 * and security. How an image is pulled, when a sandbox is ready and how many spares are kept do not count.
 */
export function specHash(profile: Profile): string {
  const { image, port, environment, mounts, resources, security } = profile;
  const parts = [
    SPEC_FORMAT,
    image,
    port,
    Object.entries(environment).sort(([a], [b]) => (a < b ? -1 : 1)),
    mounts.map(({ source, target, readOnly }) => [source, target, readOnly]),
    [resources.memoryBytes, resources.cpus, resources.pids, resources.shmBytes],
    [security.readOnlyRoot, [...security.capAdd].sort(), security.seccomp, security.runtime],
  ];
  return createHash('sha256').update(JSON.stringify(parts), 'utf8').digest('hex').slice(0, 16);
}

const HOST_PATH = /^(?:\/|\\\\|[A-Za-z]:[\\/])/;

/** A path of the host is bound, a plain name is a volume. Structured, so that a colon in a path means nothing. */
function mountOf({ source, target, readOnly }: Mount): Docker.MountSettings {
  return { Type: HOST_PATH.test(source) ? 'bind' : 'volume', Source: source, Target: target, ReadOnly: readOnly };
}

function securityOptions(seccomp: string): string[] {
  return ['no-new-privileges', ...(seccomp === 'default' ? [] : [`seccomp=${seccomp}`])];
}

/** Programs expect a `/tmp` that they can write to; its contents count as the container's memory. */
function temporaryFolders({ security, mounts }: Profile): Record<string, string> {
  if (!security.readOnlyRoot || mounts.some(({ target }) => target === '/tmp')) return {};
  return { '/tmp': 'rw,exec,nosuid,nodev,mode=1777' };
}
