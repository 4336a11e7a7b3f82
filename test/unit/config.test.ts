import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import { defaultConfig, loadConfig, parseConfig } from '../../src/config/load-config.ts';

type Env = Record<string, string | undefined>;

/** Every problem of a text, one line each; empty when there is none. */
function problemsOf(text: string, env: Env = {}, readFile = noFiles): readonly string[] {
  try {
    parseConfig(text, env, readFile);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function noFiles(path: string): never {
  throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
}

describe('defaults, file, environment', () => {
  test('[G-01] without a file the defaults hold, in milliseconds and bytes', () => {
    expect(defaultConfig({})).toEqual({
      deployment: 'default',
      server: { host: '127.0.0.1', port: 8080 },
      auth: { keys: [] },
      store: {
        type: 'memory',
        url: null,
        sentinels: [],
        sentinelName: null,
        keyPrefix: 'sandbox-broker',
        commandTimeoutMs: 2_000,
      },
      lease: { durationMs: 30_000, renewIntervalMs: 10_000 },
      holds: { ttlMs: 900_000 },
      idle: { timeoutMs: 600_000, checkIntervalMs: 15_000 },
      reconcile: { intervalMs: 30_000 },
      acquire: { waitMs: 50_000, startTimeoutMs: 120_000, parallelStarts: 4 },
      capacity: { max: 100, perUser: 0, waitTimeoutMs: 30_000 },
      runtime: {
        docker: {
          engine: { kind: 'socket', socketPath: '/var/run/docker.sock' },
          timeoutMs: 10_000,
          stopGraceMs: 2_000,
          namePrefix: 'sandbox',
          address: 'published',
          network: null,
          advertiseHost: '127.0.0.1',
          bindHost: '127.0.0.1',
          probeHost: '127.0.0.1',
        },
      },
      shutdown: { drainTimeoutMs: 25_000, sandboxes: 'destroy' },
      profiles: new Map([
        [
          'default',
          {
            name: 'default',
            image: 'sandbox-broker/sandbox:local',
            pull: 'if-missing',
            registryAuth: null,
            onSpecChange: 'keep',
            port: 8080,
            readiness: { path: '/v1/sandbox', timeoutMs: 60_000 },
            environment: {},
            mounts: [],
            resources: { memoryBytes: 512 * 2 ** 20, cpus: 1, pids: 256, shmBytes: 64 * 2 ** 20 },
            security: { readOnlyRoot: false, capAdd: [], seccomp: 'default', runtime: null },
            spares: 0,
          },
        ],
      ]),
      log: { level: 'info' },
    });
  });

  test('[G-01] every unit of durations and sizes is read exactly', () => {
    const { idle, reconcile, holds, shutdown, profiles } = parseConfig(
      `
      idle: { timeout: 1h, checkInterval: 250ms }
      reconcile: { interval: 7s }
      holds: { ttl: 596h }
      shutdown: { drainTimeout: 2m }
      profiles: { p: { resources: { memory: 3GiB, shm: 9KiB, cpus: 0.5 } } }`,
      {},
    );
    expect([idle.timeoutMs, idle.checkIntervalMs, reconcile.intervalMs]).toEqual([3_600_000, 250, 7_000]);
    expect([holds.ttlMs, shutdown.drainTimeoutMs]).toEqual([596 * 3_600_000, 120_000]);
    expect(profiles.get('p')?.resources).toMatchObject({ memoryBytes: 3 * 2 ** 30, shmBytes: 9 * 2 ** 10, cpus: 0.5 });
  });

  test('[G-01] no path reads ./config.yaml if there is one; a path that was asked for has to exist', () => {
    const files: Record<string, string> = { './config.yaml': 'deployment: here', 'other.yaml': 'deployment: there' };
    const readFile = (path: string): string => files[path] ?? noFiles(path);
    expect(loadConfig({ path: null, env: {}, readFile }).deployment).toBe('here');
    expect(loadConfig({ path: 'other.yaml', env: {}, readFile }).deployment).toBe('there');
    expect(loadConfig({ path: null, env: {}, readFile: noFiles }).deployment).toBe('default');
    expect(() => loadConfig({ path: 'gone.yaml', env: {}, readFile })).toThrow(/gone\.yaml.*ENOENT/s);
    const denied = (): never => {
      throw Object.assign(new Error('no'), { code: 'EACCES' });
    };
    expect(() => loadConfig({ path: null, env: {}, readFile: denied })).toThrow(/config\.yaml.*EACCES/s);
  });

  test('[G-01] the profiles of a file replace the default map, each filled with the defaults', () => {
    const { profiles } = parseConfig('profiles: { big: { image: "x:1", readiness: { timeout: 5s } } }', {});
    expect([...profiles.keys()]).toEqual(['big']);
    const readiness = { path: '/v1/sandbox', timeoutMs: 5_000 };
    expect(profiles.get('big')).toEqual({
      ...defaultConfig({}).profiles.get('default'),
      name: 'big',
      image: 'x:1',
      readiness,
    });
  });

  test('[G-01] the result cannot be changed', () => {
    const config = parseConfig('auth: { keys: [{ name: a, key: b }] }', { DOCKER_HOST: 'tcp://h' });
    const parts = [config, config.store, config.auth.keys, config.auth.keys[0], config.runtime.docker.engine];
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true);
    expect(Object.isFrozen(config.profiles.get('default')?.resources)).toBe(true);
  });
});

describe('variables', () => {
  test('[G-01] variables are put into text, also inside braces, and numbers and booleans may come from them', () => {
    const config = parseConfig(
      `
      deployment: blue-\${STAGE}
      server: { port: \${PORT}, host: "\${HOST:-::1}" }
      auth: { keys: [{ name: gateway, key: \${KEY} }] }
      idle: { timeout: \${IDLE:-90s} }
      profiles: { p: { environment: { A: '$\${HOME} costs $5' }, security: { readOnlyRoot: \${RO} } } }`,
      { STAGE: 'test', PORT: '81', KEY: '123456', IDLE: '', RO: 'true' },
    );
    expect(config).toMatchObject({
      deployment: 'blue-test',
      server: { port: 81, host: '::1' },
      auth: { keys: [{ name: 'gateway', key: '123456' }] },
      idle: { timeoutMs: 90_000 },
    });
    const { environment, security } = config.profiles.get('p') ?? {};
    expect(environment).toEqual({ A: '${HOME} costs $5' });
    expect(security?.readOnlyRoot).toBe(true);
  });

  test('[G-01] what a variable holds is text: it adds no keys and is not expanded again', () => {
    const env = { A: 'x, B: "y"\nC: ${A}' };
    const { profiles } = parseConfig('profiles: { p: { environment: { A: ${A} } } }', env);
    expect(profiles.get('p')?.environment).toEqual(env);
  });

  test('[G-01] a missing variable and a malformed one are told with the key', () => {
    const text = 'deployment: ${NO_SUCH}\nauth: { keys: [{ name: a, key: ${toString} }] }\nlog: { level: "${ x }" }';
    expect(problemsOf(text)).toEqual([
      'deployment: the environment variable NO_SUCH is not set',
      'auth.keys[0].key: the environment variable toString is not set',
      expect.stringMatching(/^log\.level: .*\$\{NAME\}/),
    ]);
  });
});

describe('what is refused', () => {
  test.for([
    ['an unknown key', 'lease: { length: 5s }', 'lease.length: unknown key; allowed: duration, renewInterval'],
    ['an unknown section', 'leases: {}', /^leases: unknown key; allowed: deployment, .*lease/],
    ['a key of every object', '__proto__: 1', /^__proto__: unknown key/],
    [
      'a duration without a unit',
      'holds: { ttl: 900 }',
      /^holds\.ttl: 900 is not allowed; allowed: a duration such as/,
    ],
    ['a unit that is none', 'holds: { ttl: 9d }', /^holds\.ttl: "9d" is not allowed/],
    ['a negative duration', 'holds: { ttl: -5s }', /^holds\.ttl: "-5s" is not allowed/],
    ['NaN as a duration', 'idle: { timeout: .nan }', /^idle\.timeout: NaN is not allowed/],
    ['NaN in words', 'idle: { timeout: NaN }', /^idle\.timeout: "NaN" is not allowed/],
    ['Infinity as a duration', 'idle: { timeout: .inf }', /^idle\.timeout: Infinity is not allowed/],
    ['2^31 ms', 'idle: { timeout: 2147483648ms }', /^idle\.timeout: "2147483648ms" is not allowed.*2\^31 ms/],
    ['zero where it means nothing', 'reconcile: { interval: 0 }', /^reconcile\.interval: 0 is not allowed/],
    [
      'NaN as a number',
      'capacity: { max: .nan }',
      /^capacity\.max: NaN is not allowed; allowed: a whole number from 1/,
    ],
    ['Infinity as a number', 'capacity: { perUser: .inf }', /^capacity\.perUser: Infinity is not allowed/],
    ['a negative number', 'capacity: { perUser: -1 }', /^capacity\.perUser: -1 is not allowed/],
    ['a fraction', 'capacity: { max: 1.5 }', /^capacity\.max: 1\.5 is not allowed/],
    ['NaN as cpus', 'profiles: { p: { resources: { cpus: .nan } } }', /^profiles\.p\.resources\.cpus: NaN/],
    ['a number as text', 'capacity: { max: "5" }', /^capacity\.max: "5" is not allowed/],
    [
      'text as a boolean',
      'profiles: { p: { security: { readOnlyRoot: "no" } } }',
      /readOnlyRoot: "no" .* true or false$/,
    ],
    ['null for text', 'deployment: null', /^deployment: null is not allowed/],
    ['null for a section', 'lease:', /^lease: null is not allowed; allowed: a map with duration, renewInterval/],
    ['a list for a map', '- a', /^the whole file: a list is not allowed/],
    [
      'a word that is none of them',
      'log: { level: loud }',
      /^log\.level: "loud" is not allowed; allowed: trace or debug/,
    ],
    ['a size without a unit', 'profiles: { p: { resources: { shm: 64 } } }', /^profiles\.p\.resources\.shm: 64 .*MiB/],
    ['a size that no engine takes', 'profiles: { p: { resources: { memory: 1MiB } } }', /memory: "1MiB" .*6MiB/],
    ['a missing key of an item', 'auth: { keys: [{ name: a }] }', /^auth\.keys\[0\]\.key: is missing; allowed: /],
    ['a profile name', 'profiles: { Big: {} }', /^profiles\.Big: this name is not allowed; allowed: 1 to 40 of a-z/],
    ['no profile', 'profiles: {}', /^profiles: .*at least one/],
    ['a port out of range', 'server: { port: 65536 }', /^server\.port: 65536 is not allowed/],
    ['a host that is none', 'server: { host: 127.1 }', /^server\.host: /],
    [
      'a Redis url of another kind',
      'store: { url: "http://h" }',
      /^store\.url: \(hidden\) is not allowed; allowed: redis/,
    ],
    [
      'no readable certificate',
      'runtime: { docker: { host: h, tls: { ca: a, cert: b, key: c } } }',
      /tls\.ca: "a" is not/,
    ],
    ['a key given twice', 'deployment: a\ndeployment: b', 'line 2, column 1: the key deployment is given twice'],
    ['broken YAML', 'lease: [', /^line 1, column \d+: not valid YAML/],
  ] as const)('[G-01] %s is an error that names the key', ([, text, expected]) => {
    expect(problemsOf(text)[0]).toEqual(typeof expected === 'string' ? expected : expect.stringMatching(expected));
  });

  test('[G-01] 0 is allowed where it means something, and the longest duration is', () => {
    const text =
      'idle: { timeout: 0 }\nacquire: { wait: 0s }\ncapacity: { waitTimeout: 0 }\nholds: { ttl: 2147483647ms }';
    expect(parseConfig(text, {})).toMatchObject({
      idle: { timeoutMs: 0 },
      acquire: { waitMs: 0 },
      capacity: { waitTimeoutMs: 0 },
      holds: { ttlMs: 2 ** 31 - 1 },
    });
  });

  test('[G-01] everything that is wrong is reported at once, one line each, and no rule is judged by a stand-in', () => {
    const text = 'lease: { duration: 5x, renewInterval: 20s }\nholds: { ttl: 1s }\nwhat: 1\ndeployment: "a\\nb"';
    const problems = problemsOf(text);
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'what',
      'deployment',
      'lease.duration',
      'holds.ttl',
    ]);
    expect(problems.join('')).not.toContain('\n');
    expect(() => parseConfig(text, {})).toThrow(problems.map((problem) => `  ${problem}`).join('\n'));
  });

  test('[R-15] no problem shows a key, a password, an environment value or the credentials of a url', () => {
    const env = { SECRET: 's3cret with spaces', REDIS_URL: 'redis://:s3cret@h:x', DOCKER_HOST: 'ssh://s3cret@h' };
    const texts = [
      'auth: { keys: [{ name: a, key: "s3cret s3cret" }, s3cret, { name: b, key:s3cret }, { name: c, key: [s3cret] }] }',
      'auth: { keys: [{ name: a, key: s3cret }, { name: b, key: s3cret }] }',
      'auth: { keys: [{ name: a, key: ${SECRET} }, { name: b, key: "${NOPE:-s3cret s3cret}" }] }',
      'auth: s3cret',
      'deployment: !s3cret x',
      'deployment: ${SECRET}',
      'store: { url: "redis://user:s3cret@host:x" }',
      'store: { url: "redis://:s3@cret?s3cret#s3cret@host/no" }',
      'store: { url: "redis://host/?password=s3cret" }',
      'store: { url: "s3cret" }',
      'store: { url: "redis://:s3cret@h", sentinels: [{ host: h }], type: redis }',
      'profiles: { p: { environment: { A: { s3: s3cret }, "B=s3cret": x, C: ["s3cret"], D: "s3cret\\0" } } }',
      'profiles: { p: { environment: s3cret, registryAuth: { username: u, password: "s3cret\\0" } } }',
      'runtime: { docker: { host: h, tls: { ca: "-----s3cret", cert: "a\\ns3cret", key: "${SECRET}" } } }',
      'auth: { keys: [{ name: a, key: "s3cret } ] }',
      'auth: { keys: [{ name: a, key: !s3cret s3cret, key: *s3cret }] }',
      '',
    ];
    for (const text of texts) {
      const problems = problemsOf(text, env);
      expect(problems, text).not.toEqual([]);
      expect(problems.join('\n'), text).not.toMatch(/s3cret|cret@/);
    }
  });
});
