import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ContainerId } from '../../src/domain/ids.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { DockerRuntimeOptions } from '../../src/runtime/docker-options.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { dockerClient, dockerRuntime, leftovers, newDeployment, sweep } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';
import { createdBy, useTinyImage } from '../support/tiny-image.ts';

const MIB = 1024 * 1024;
const SHUT: Profile['security'] = { readOnlyRoot: false, capAdd: [], seccomp: 'default', runtime: null };

const docker = dockerClient();
const image = useTinyImage();
let deployment: string;
let runtime: DockerRuntime;
beforeEach(() => {
  deployment = newDeployment('hardening');
  runtime = open();
});
afterEach(async () => {
  await runtime.close();
  await sweep(deployment);
});

function open(changes: Partial<DockerRuntimeOptions> = {}): DockerRuntime {
  return dockerRuntime({ deployment, namePrefix: deployment, profiles: new Map(), ...changes });
}

async function run(changes: Partial<Profile> = {}, by = runtime): Promise<{ container: ContainerId; url: string }> {
  const profile = tinyProfile(image.name, changes);
  const container = await createdBy(by, profile);
  await by.start(container);
  const { url } = await by.waitReady(container, profile, 20_000);
  return { container, url };
}

/** Runs a command inside a container: what it printed, and its exit code. */
async function inside(container: ContainerId, script: string): Promise<{ text: string; code: number | null }> {
  const exec = await docker.getContainer(container).exec({
    Cmd: ['/bin/busybox', 'sh', '-c', script],
    AttachStdout: true,
    AttachStderr: true,
    Tty: true,
  });
  const stream = await exec.start({ Tty: true });
  let text = '';
  for await (const chunk of stream) text += chunk;
  return { text, code: (await exec.inspect()).ExitCode };
}

function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 });
    const done = (did: boolean) => () => {
      socket.destroy();
      resolve(did);
    };
    socket.on('connect', done(true)).on('error', done(false)).on('timeout', done(false));
  });
}

test('[R-16] the engine has made what was asked: limits, no capabilities, no new privileges, init, no restart', async () => {
  const { container } = await run({
    security: { readOnlyRoot: true, capAdd: ['CHOWN'], seccomp: 'default', runtime: null },
  });
  const { HostConfig } = await docker.getContainer(container).inspect();
  expect(HostConfig).toMatchObject({
    AutoRemove: false,
    Init: true,
    Memory: 64 * 1024 * 1024,
    MemorySwap: 64 * 1024 * 1024,
    NanoCpus: 1e9,
    PidsLimit: 64,
    Privileged: false,
    ReadonlyRootfs: true,
    RestartPolicy: { Name: 'no' },
    ShmSize: 16 * 1024 * 1024,
  });
  const { text } = await inside(container, 'busybox cat /proc/1/status');
  expect(text).toMatch(/CapBnd:\s+0000000000000001/);
  expect(text).toMatch(/NoNewPrivs:\s+1/);
  expect(text).toMatch(/Seccomp:\s+2/);
  expect((await inside(container, 'echo x > /file')).code).not.toBe(0);
  expect((await inside(container, 'echo x > /tmp/file')).code).toBe(0);
});

/** Newer engines write it out. */
const CHOWN: unknown = expect.stringMatching(/^(CAP_)?CHOWN$/);
const MOUNT = { source: '/tmp', target: '/data', readOnly: true };
const NOTHING_OF = {
  Binds: null,
  DeviceRequests: null,
  Devices: null,
  ExtraHosts: null,
  Links: null,
  VolumesFrom: null,
};
const NAMESPACES_OF_ITS_OWN = { CgroupParent: '', IpcMode: 'private', PidMode: '', UTSMode: '', UsernsMode: '' };
const PROFILES: readonly { readonly option: string; readonly changes: Partial<Profile>; readonly own: object }[] = [
  { option: 'nothing', changes: {}, own: {} },
  { option: 'environment and a port', changes: { environment: { WORDS: 'w' }, port: 9_090 }, own: {} },
  {
    option: 'resources',
    changes: { resources: { memoryBytes: 96 * MIB, cpus: 0.25, pids: 17, shmBytes: 2 * MIB } },
    own: { Memory: 96 * MIB, MemorySwap: 96 * MIB, NanoCpus: 250_000_000, PidsLimit: 17, ShmSize: 2 * MIB },
  },
  { option: 'a read-only root', changes: { security: { ...SHUT, readOnlyRoot: true } }, own: { ReadonlyRootfs: true } },
  { option: 'a capability', changes: { security: { ...SHUT, capAdd: ['CHOWN'] } }, own: { CapAdd: [CHOWN] } },
  {
    option: 'no seccomp filter',
    changes: { security: { ...SHUT, seccomp: 'unconfined' } },
    own: { SecurityOpt: ['no-new-privileges', 'seccomp=unconfined'] },
  },
  { option: 'a runtime', changes: { security: { ...SHUT, runtime: 'runc' } }, own: { Runtime: 'runc' } },
  { option: 'a mount', changes: { mounts: [MOUNT] }, own: { Mounts: [expect.objectContaining({ ReadOnly: true })] } },
];

test.each(PROFILES)('[R-16] a profile with $option is shut in every other respect', async ({ changes, own }) => {
  const profile = tinyProfile(image.name, changes);
  const container = await createdBy(runtime, profile);
  const { HostConfig, Config, NetworkSettings } = await docker.getContainer(container).inspect();
  const port = `${profile.port}/tcp`;
  const [network] = (await leftovers(deployment)).networks;
  expect(HostConfig).toMatchObject({
    AutoRemove: false,
    CapAdd: [],
    CapDrop: ['ALL'],
    ...NOTHING_OF,
    ...NAMESPACES_OF_ITS_OWN,
    GroupAdd: null,
    Init: true,
    Memory: 64 * MIB,
    MemorySwap: 64 * MIB,
    NanoCpus: 1e9,
    NetworkMode: network,
    PidsLimit: 64,
    PortBindings: { [port]: [{ HostIp: '127.0.0.1', HostPort: '' }] },
    Privileged: false,
    PublishAllPorts: false,
    ReadonlyRootfs: false,
    RestartPolicy: { Name: 'no' },
    SecurityOpt: ['no-new-privileges'],
    ShmSize: 16 * MIB,
    ...own,
  });
  expect(Object.keys(Config.ExposedPorts ?? {})).toEqual([port]);
  expect(Object.keys(NetworkSettings.Networks)).toHaveLength(1);
});

test('[R-16] a sandbox is reached by its bind address only, neither from outside nor by its neighbours', async () => {
  const one = await run();
  const other = await run();
  const port = Number(new URL(one.url).port);
  expect(await answers('127.0.0.1', port)).toBe(true);
  const outside = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal);
  for (const { address } of outside) expect(await answers(address, port)).toBe(false);

  const { NetworkSettings } = await docker.getContainer(one.container).inspect();
  const [network] = Object.values(NetworkSettings.Networks);
  const to = `${network!.IPAddress} 8080`;
  expect((await inside(one.container, `echo | busybox nc -w 2 ${to}`)).code).toBe(0);
  expect((await inside(other.container, `echo | busybox nc -w 2 ${to}`)).code).not.toBe(0);
  expect((await inside(other.container, `echo | busybox nc -w 2 ${network!.Gateway} ${port}`)).code).not.toBe(0);
});

test('[R-08] the port is bound to the address that was configured, and that one is in the url', async () => {
  await using _ = { [Symbol.asyncDispose]: async () => elsewhere.close() };
  const elsewhere = open({ bindHost: '127.0.0.2', advertiseHost: '127.0.0.2' });
  const { url } = await run({}, elsewhere);
  const { hostname, port } = new URL(url);
  expect(hostname).toBe('127.0.0.2');
  expect(await answers('127.0.0.2', Number(port))).toBe(true);
  expect(await answers('127.0.0.1', Number(port))).toBe(false);
});

test('[R-14] a mount that is read-only stays so', async () => {
  const volume = `${deployment}-data`;
  await docker.createVolume({ Name: volume, Labels: { 'sandbox-broker.deployment': deployment } });
  const mounts = [
    { source: volume, target: '/rw', readOnly: false },
    { source: volume, target: '/ro', readOnly: true },
  ];
  const { container } = await run({ mounts });
  expect((await inside(container, 'echo kept > /rw/file')).code).toBe(0);
  expect((await inside(container, 'busybox cat /ro/file')).text).toContain('kept');
  expect((await inside(container, 'echo lost > /ro/file')).code).not.toBe(0);
});

test('[R-16] replicas that make the network in the same moment use one, and a lost one is made again', async () => {
  const replicas = Array.from({ length: 4 }, () => open());
  const runs = replicas.map((replica) => run({}, replica));
  await Promise.allSettled(runs);
  const made = await Promise.all(runs);
  const networks = await leftovers(deployment);
  expect(networks.networks).toHaveLength(1);
  for (const { container } of made) await docker.getContainer(container).remove({ force: true });
  await docker.getNetwork(networks.networks[0]!).remove();
  await expect(run({}, replicas[0])).rejects.toMatchObject({ code: 'sandbox_start_failed' });
  await run({}, replicas[0]);
  const [network] = await docker.listNetworks({ filters: { label: [`sandbox-broker.deployment=${deployment}`] } });
  expect(network?.Options).toMatchObject({ 'com.docker.network.bridge.enable_icc': 'false' });
  for (const replica of replicas) await replica.close();
});

test('[R-20] on a named network the url is the container itself, reached by a neighbour, and no port is published', async () => {
  const name = `${deployment}-shared`;
  await docker.createNetwork({ Name: name, Labels: { 'sandbox-broker.deployment': deployment } });
  const inNetwork = open({ address: 'network', network: name });
  const one = await run({}, inNetwork);
  const other = await run({}, inNetwork);
  const { hostname, port } = new URL(one.url);
  expect(port).toBe('8080');
  const request = `printf 'GET /v1/sandbox HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 2 ${hostname} ${port}`;
  expect((await inside(other.container, request)).text).toContain('200 OK');
  const { HostConfig } = await docker.getContainer(one.container).inspect();
  expect(HostConfig.PortBindings).toEqual({});
  await inNetwork.close();
});
