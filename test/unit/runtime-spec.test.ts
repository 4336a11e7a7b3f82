import { expect, test } from 'vitest';
import { asOwnerId, parseFence } from '../../src/domain/ids.ts';
import type { Profile } from '../../src/domain/profile.ts';
import { containerSpec, specHash } from '../../src/runtime/container-spec.ts';
import { readLabels, writeLabels } from '../../src/runtime/labels.ts';
import { tinyProfile } from '../support/profiles.ts';

const specOf = (changes: Partial<Profile>, bindHost: string | null = '127.0.0.1') =>
  containerSpec({ name: 'n', labels: { a: 'b' }, profile: tinyProfile('image:1', changes), network: 'net', bindHost })
    .body;

test('[R-14] mounts are structured: a Windows path survives, a plain name is a volume, read-only stays so', () => {
  const mounts = [
    { source: 'C:\\data\\in', target: 'C:\\in', readOnly: true },
    { source: '/srv/a:b', target: '/data', readOnly: false },
    { source: 'cache', target: '/cache', readOnly: true },
  ];
  const { HostConfig } = specOf({ mounts });
  expect(HostConfig?.Mounts).toEqual([
    { Type: 'bind', Source: 'C:\\data\\in', Target: 'C:\\in', ReadOnly: true },
    { Type: 'bind', Source: '/srv/a:b', Target: '/data', ReadOnly: false },
    { Type: 'volume', Source: 'cache', Target: '/cache', ReadOnly: true },
  ]);
  expect(HostConfig).not.toHaveProperty('Binds');
});

test('[R-16] limits and privileges come from the profile, everything else is shut', () => {
  const seccomp = '{"defaultAction":"SCMP_ACT_ALLOW"}';
  const body = specOf({
    environment: { A: '1', B: 'x=y' },
    resources: { memoryBytes: 5_000_000, cpus: 0.5, pids: 7, shmBytes: 9_000_000 },
    security: { readOnlyRoot: true, capAdd: ['CHOWN'], seccomp, runtime: 'runsc' },
  });
  expect(body).toMatchObject({ Image: 'image:1', Env: ['A=1', 'B=x=y'], Labels: { a: 'b' } });
  expect(body.HostConfig).toMatchObject({
    AutoRemove: false,
    CapAdd: ['CHOWN'],
    CapDrop: ['ALL'],
    Init: true,
    Memory: 5_000_000,
    MemorySwap: 5_000_000,
    NanoCpus: 500_000_000,
    NetworkMode: 'net',
    PidsLimit: 7,
    Privileged: false,
    ReadonlyRootfs: true,
    RestartPolicy: { Name: 'no' },
    Runtime: 'runsc',
    SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`],
    ShmSize: 9_000_000,
    Tmpfs: { '/tmp': expect.stringContaining('nosuid') },
  });
});

test('[R-16] defaults add nothing: no seccomp option, no runtime, no capability', () => {
  const { HostConfig } = specOf({});
  expect(HostConfig).toMatchObject({ CapAdd: [], SecurityOpt: ['no-new-privileges'], Tmpfs: {} });
  expect(HostConfig).not.toHaveProperty('Runtime');
  const security = { readOnlyRoot: false, capAdd: [], seccomp: 'unconfined', runtime: null };
  expect(specOf({ security }).HostConfig?.SecurityOpt).toEqual(['no-new-privileges', 'seccomp=unconfined']);
});

test('[R-08] a port is published on the bind address only, by a number of the engine; or not at all', () => {
  expect(specOf({}, '::1').HostConfig?.PortBindings).toEqual({ '8080/tcp': [{ HostIp: '::1', HostPort: '' }] });
  expect(specOf({}, null).HostConfig?.PortBindings).toEqual({});
  expect(specOf({}, null).ExposedPorts).toEqual({ '8080/tcp': {} });
});

test('[A-15] the spec follows what a container is made of, and nothing else', () => {
  const base = tinyProfile('image:1', { environment: { A: '1', B: '2' } });
  const same: Partial<Profile>[] = [
    { environment: { B: '2', A: '1' } },
    { name: 'other', pull: 'always', spares: 3, onSpecChange: 'replace' },
    { registryAuth: { username: 'u', password: 'p' }, readiness: { path: '/', timeoutMs: 1 } },
  ];
  const other: Partial<Profile>[] = [
    { image: 'image:2' },
    { port: 81 },
    { environment: { A: '1', B: '3' } },
    { environment: { A: '1' } },
    { mounts: [{ source: 'a', target: '/a', readOnly: true }] },
    { resources: { ...base.resources, cpus: 2 } },
    { security: { ...base.security, readOnlyRoot: true } },
  ];
  for (const change of same) expect(specHash({ ...base, ...change })).toBe(specHash(base));
  const hashes = new Set(other.map((change) => specHash({ ...base, ...change })));
  expect(hashes.size).toBe(other.length);
  expect(hashes).not.toContain(specHash(base));
  expect(specHash(base)).toMatch(/^[0-9a-f]{16}$/);
});

test('[R-15] labels hold no environment, and any user text in a safe form', () => {
  const userId = '../"\u0000\n:é🙂';
  const labels = writeLabels({
    deployment: 'd',
    profile: 'p',
    spec: 's',
    owner: asOwnerId('h:1'),
    handout: { fence: parseFence('9007199254740991')!, userId, threadId: 't' },
  });
  for (const value of Object.values(labels)) expect(value).toMatch(/^[\w:-]*$/);
  expect(readLabels(labels)).toEqual({
    profile: 'p',
    spec: 's',
    owner: 'h:1',
    fence: 9007199254740991,
    userId,
    threadId: 't',
  });
});

test('[R-03] labels that the broker cannot have written are read as unknown', () => {
  const labels = {
    'sandbox-broker.user': 'not base64url!',
    'sandbox-broker.thread': 'YQ==',
    'sandbox-broker.fence': '12e3',
    'sandbox-broker.owner': '',
  };
  expect(readLabels(labels)).toEqual({
    profile: null,
    spec: null,
    owner: null,
    fence: null,
    userId: null,
    threadId: null,
  });
});
