import { expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import { defaultConfig, parseConfig } from '../../src/config/load-config.ts';
import { asContainerId, asSandboxId } from '../../src/domain/ids.ts';
import { condemnedName } from '../../src/domain/names.ts';

type Env = Record<string, string | undefined>;

function problemsOf(text: string, env: Env = {}): readonly string[] {
  try {
    parseConfig(text, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

const docker = (inside: string): string => `runtime: { docker: { ${inside} } }`;

/** What is refused, the same thing just barely allowed, the key that is named, and a word of the reason. */
test.for([
  ['lease: { duration: 19999ms }', 'lease: { duration: 20s }', 'lease.duration', /outlive one failed renewal/],
  ['lease: { renewInterval: 0 }', 'lease: { renewInterval: 2s }', 'lease.renewInterval', /longer than 0/],
  ['lease: { renewInterval: -1s }', 'lease: { renewInterval: 2s }', 'lease.renewInterval', /longer than 0/],
  ['store: { commandTimeout: 10001ms }', 'store: { commandTimeout: 10s }', 'store.commandTimeout', /before the next/],
  [docker('timeout: 30s'), docker('timeout: 29999ms'), 'runtime.docker.timeout', /lease .* still holds/],
  [docker('stopGrace: 10s'), docker('stopGrace: 9999ms'), 'runtime.docker.stopGrace', /within the time of one call/],
  [docker('address: network'), docker('address: network, network: n1'), 'runtime.docker.network', /by name/],
  [docker('network: host'), docker('network: hosts'), 'runtime.docker.network', /other than host/],
  [
    'profiles: { p: { readiness: { timeout: 120001ms } } }',
    'profiles: { p: { readiness: { timeout: 120s } } }',
    'profiles.p.readiness.timeout',
    /part of the start/,
  ],
  ['holds: { ttl: 119999ms }', 'holds: { ttl: 120s }', 'holds.ttl', /still being started/],
  ['deployment: "a{b"', 'deployment: a.b_C-9', 'deployment', /no braces, which would move the Redis slot/],
  ['deployment: "a}b"', 'deployment: a', 'deployment', /no braces/],
  ['store: { keyPrefix: "{a}" }', 'store: { keyPrefix: a:b }', 'store.keyPrefix', /no braces/],
  [docker('namePrefix: -a'), docker('namePrefix: a-'), 'runtime.docker.namePrefix', /as the engine wants/],
  [docker('namePrefix: a/b'), docker('namePrefix: a.b'), 'runtime.docker.namePrefix', /as the engine wants/],
  [
    docker(`namePrefix: ${'a'.repeat(31)}`),
    docker(`namePrefix: ${'a'.repeat(30)}`),
    'runtime.docker.namePrefix',
    /2 to 30/,
  ],
  [
    'store: { sentinelName: m }',
    'store: { sentinelName: m, sentinels: [{ host: h }] }',
    'store.sentinelName',
    /together/,
  ],
  ['store: { sentinels: [{ host: h }] }', 'store: {}', 'store.sentinelName', /together/],
  ['store: { type: redis }', 'store: { type: redis, url: "redis://h" }', 'store.type', /no address/],
  [docker('host: h, socketPath: /s'), docker('host: h'), 'runtime.docker.host', /one of the two/],
  [docker('port: 1'), docker('port: 1, host: h'), 'runtime.docker.port', /runtime\.docker\.host, which is not set/],
  [
    'auth: { keys: [{ name: a, key: k1 }, { name: a, key: k2 }] }',
    'auth: { keys: [{ name: a, key: k1 }, { name: b, key: k2 }] }',
    'auth.keys[1].name',
    /twice/,
  ],
] as const)('[G-02] refused with the reason: %s', ([refused, allowed, key, reason]) => {
  const problems = problemsOf(refused);
  expect(problems).toEqual([expect.stringMatching(reason)]);
  expect(problems[0]).toContain(`${key}: `);
  expect(problemsOf(allowed)).toEqual([]);
});

test('[G-02] the message names the keys, both values and the reason', () => {
  expect(problemsOf('lease: { duration: 15s }')).toEqual([
    'lease.duration: "15s" is refused beside lease.renewInterval "10s": a lease has to outlive one failed renewal, so it is at least twice the interval',
  ]);
});

test('[G-02] with the longest name prefix every name of ours is one that the engine takes', () => {
  const { namePrefix } = parseConfig(docker(`namePrefix: ${'a'.repeat(30)}`), {}).runtime.docker;
  const name = condemnedName(namePrefix, asSandboxId('0'.repeat(32)), asContainerId('f'.repeat(64)));
  expect(name).toMatch(/^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/);
  expect(name.length).toBeLessThanOrEqual(128);
});

test('[G-03] the lease is the same whatever the idle settings are', () => {
  for (const idle of [
    '{ timeout: 0 }',
    '{ timeout: 1ms, checkInterval: 1ms }',
    '{ timeout: 500h, checkInterval: 9h }',
  ]) {
    expect(parseConfig(`idle: ${idle}`, {}).lease).toEqual(defaultConfig({}).lease);
  }
  const lease = { durationMs: 5_000, renewIntervalMs: 2_500 };
  const text =
    'lease: { duration: 5s, renewInterval: 2500ms }\nruntime: { docker: { timeout: 4s } }\nidle: { timeout: 1ms }';
  expect(parseConfig(text, {}).lease).toEqual(lease);
});

test.for([
  ['nothing set', '', undefined, 'memory', null],
  ['an empty variable', '', '', 'memory', null],
  ['REDIS_URL', '', 'redis://env/1', 'redis', 'redis://env/1'],
  ['a url in the file', 'url: "redis://file"', undefined, 'redis', 'redis://file'],
  ['both', 'url: "rediss://file"', 'redis://env', 'redis', 'rediss://file'],
  ['memory, and REDIS_URL', 'type: memory', 'redis://env', 'memory', null],
  ['memory, and a REDIS_URL that is none', 'type: memory', 'nonsense', 'memory', null],
  ['memory, and a url in the file', 'type: memory, url: "redis://file"', undefined, 'memory', 'redis://file'],
  ['redis, and REDIS_URL', 'type: redis', 'redis://env', 'redis', 'redis://env'],
  ['null, and REDIS_URL', 'type: null, url: null', 'redis://env', 'redis', 'redis://env'],
  ['sentinels', 'sentinelName: m, sentinels: [{ host: h }]', undefined, 'redis', null],
] as const)('[G-04] store: %s', ([, inside, env, type, url]) => {
  const { store, shutdown } = parseConfig(`store: { ${inside} }`, { REDIS_URL: env });
  expect([store.type, store.url]).toEqual([type, url]);
  expect(shutdown.sandboxes).toBe(type === 'redis' ? 'keep' : 'destroy');
});

test('[G-04] a REDIS_URL that counts and cannot be used is an error that names it', () => {
  expect(problemsOf('', { REDIS_URL: 'localhost:6379' })).toEqual([expect.stringMatching(/^REDIS_URL: .*redis:\/\//)]);
});

test('[G-01] what to do with sandboxes at shutdown can be said with either store', () => {
  const of = (text: string, env: Env): string =>
    parseConfig(`shutdown: { sandboxes: ${text} }`, env).shutdown.sandboxes;
  expect([of('destroy', { REDIS_URL: 'redis://h' }), of('keep', {})]).toEqual(['destroy', 'keep']);
});

const PEM = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';

test.for([
  ['nothing set', '', {}, { kind: 'socket', socketPath: '/var/run/docker.sock' }],
  ['a socket in DOCKER_HOST', '', { DOCKER_HOST: 'unix:///run/d.sock' }, { kind: 'socket', socketPath: '/run/d.sock' }],
  ['a host in DOCKER_HOST', '', { DOCKER_HOST: 'tcp://h' }, { kind: 'tcp', host: 'h', port: 2375, tls: null }],
  ['IPv6 in DOCKER_HOST', '', { DOCKER_HOST: 'tcp://[::1]:9' }, { kind: 'tcp', host: '::1', port: 9, tls: null }],
  [
    'TLS in the environment',
    '',
    { DOCKER_HOST: 'tcp://h', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/c' },
    {
      kind: 'tcp',
      host: 'h',
      port: 2376,
      tls: { ca: `/c/ca.pem\n${PEM}`, cert: `/c/cert.pem\n${PEM}`, key: `/c/key.pem\n${PEM}` },
    },
  ],
  ['a socket in the file wins', 'socketPath: /s', { DOCKER_HOST: 'tcp://h' }, { kind: 'socket', socketPath: '/s' }],
  [
    'a host in the file wins',
    'host: f, port: 5, tls: { ca: x, cert: y, key: z }',
    { DOCKER_HOST: 'ssh://no' },
    { kind: 'tcp', host: 'f', port: 5, tls: { ca: `x\n${PEM}`, cert: `y\n${PEM}`, key: `z\n${PEM}` } },
  ],
] as const)('[G-01] engine: %s', ([, inside, env, engine]) => {
  const { runtime } = parseConfig(docker(inside), env, (path) => `${path}\n${PEM}`);
  expect(runtime.docker.engine).toEqual(engine);
});

test('[G-01] an environment that asks for an engine we cannot reach is an error', () => {
  expect(problemsOf('', { DOCKER_HOST: 'ssh://h' })).toEqual([expect.stringMatching(/^DOCKER_HOST: .*unix:\/\//)]);
  const tls = { DOCKER_HOST: 'tcp://h', DOCKER_TLS_VERIFY: '1' };
  expect(problemsOf('', tls)).toEqual([expect.stringMatching(/^DOCKER_CERT_PATH: is not set/)]);
});

test.for([
  ['127.0.0.1', '127.0.0.1'],
  ['127.8.0.1', '127.8.0.1'],
  ['localhost', '127.0.0.1'],
  ['"::1"', '::1'],
  ['"0:0:0:0:0:0:0:1"', '::1'],
] as const)('[R-08] a loopback advertiseHost %s publishes on loopback', ([advertiseHost, bindHost]) => {
  expect(parseConfig(docker(`advertiseHost: ${advertiseHost}`), {}).runtime.docker.bindHost).toBe(bindHost);
});

test('[R-08] any other advertiseHost is refused without a bindHost, and with it both are kept', () => {
  for (const host of ['10.0.0.1', '0.0.0.0', 'broker.example', '"::"', '"fd00::1"', 'localhost.example']) {
    expect(problemsOf(docker(`advertiseHost: ${host}`)), host).toEqual([
      expect.stringMatching(/^runtime\.docker\.bindHost: null is refused beside runtime\.docker\.advertiseHost /),
    ]);
  }
  const config = parseConfig(docker('advertiseHost: broker.example, bindHost: 0.0.0.0'), {});
  expect(config.runtime.docker).toMatchObject({
    advertiseHost: 'broker.example',
    bindHost: '0.0.0.0',
    probeHost: 'broker.example',
  });
  expect(parseConfig(docker('probeHost: 10.1.1.1'), {}).runtime.docker.probeHost).toBe('10.1.1.1');
  expect(problemsOf(docker('bindHost: broker.example'))).toHaveLength(1);
});

test('[R-14] a mount target used twice is an error, however it is spelled; in another profile it is not', () => {
  const mounts = (...targets: string[]): string =>
    `mounts: [${targets.map((target) => `{ source: vol, target: ${target} }`)}]`;
  for (const again of ['/data', '/data/', '//data', '/x/../data/.']) {
    expect(problemsOf(`profiles: { p: { ${mounts('/data', again)} } }`), again).toEqual([
      expect.stringMatching(/^profiles\.p\.mounts\[1\]\.target: .* beside profiles\.p\.mounts\[0\]\.target .*twice/),
    ]);
  }
  expect(problemsOf(`profiles: { p: { ${mounts('/data', '/data2')} }, q: { ${mounts('/data')} } }`)).toEqual([]);
});

test('[R-14] a Windows path survives, and read-only stays read-only', () => {
  const { profiles } = parseConfig(
    "profiles: { p: { mounts: [{ source: 'C:\\Users\\me', target: /a, readOnly: true }, { source: vol, target: /b }] } }",
    {},
  );
  expect(profiles.get('p')?.mounts).toEqual([
    { source: 'C:\\Users\\me', target: '/a', readOnly: true },
    { source: 'vol', target: '/b', readOnly: false },
  ]);
  expect(problemsOf('profiles: { p: { mounts: [{ source: ./here, target: /a }] } }')).toHaveLength(1);
  expect(problemsOf('profiles: { p: { mounts: [{ source: vol, target: / }] } }')).toHaveLength(1);
});

test('[H-05] without a key only a loopback host is listened on', () => {
  for (const host of ['0.0.0.0', '"::"', '10.0.0.1', 'broker.example', '"::ffff:10.0.0.1"']) {
    expect(problemsOf(`server: { host: ${host} }`), host).toEqual([
      expect.stringMatching(/^server\.host: .* is refused beside auth\.keys \[\]: without a key/),
    ]);
    expect(problemsOf(`server: { host: ${host} }\nauth: { keys: [{ name: a, key: k }] }`), host).toEqual([]);
  }
  for (const host of ['127.0.0.1', '127.9.9.9', 'localhost', '"::1"', '"::ffff:127.0.0.1"']) {
    expect(problemsOf(`server: { host: ${host} }`), host).toEqual([]);
  }
  expect(problemsOf('auth: { keys: [{ name: a, key: "" }] }')).toHaveLength(1);
});
