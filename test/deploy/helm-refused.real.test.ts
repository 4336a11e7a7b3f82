import { expect, test } from 'vitest';
import { EXAMPLES, over, type Tree, template } from './helm-chart.ts';

const bad = (example: string, change: Tree): Tree => over(EXAMPLES[example], change);
const unset = { config: { runtime: { docker: { bindHost: null } } } };
const REFUSED: readonly (readonly [string, Tree, RegExp])[] = [
  ['no engine', {}, /engine\/mode': value must be one of 'remote', 'bundled', 'node'/],
  [
    'an engine beside each replica',
    bad('remote', { engine: { mode: 'sidecar' } }),
    /engine\/mode': value must be one of/,
  ],
  [
    'a remote engine without a host',
    bad('remote', { engine: { remote: { host: '' } } }),
    /engine\.remote\.host: is not set/,
  ],
  [
    'a remote engine without TLS',
    bad('remote', { engine: { remote: { tlsSecret: '' } } }),
    /engine\.remote\.tlsSecret: .*root on its host/,
  ],
  ['a remote engine that publishes nowhere', bad('remote', unset), /config\.runtime\.docker\.bindHost: is not set/],
  ['no node', bad('node', { engine: { node: { name: '' } } }), /engine\.node\.name: is not set/],
  [
    'a node without an address',
    bad('node', { engine: { node: { address: '' } } }),
    /engine\.node\.address: is not set/,
  ],
  [
    'a socket without a group',
    bad('node', { engine: { node: { socketGroup: null } } }),
    /engine\.node\.socketGroup: is not set/,
  ],
  ['a bundled engine without an image to pull', { ...EXAMPLES.bundled, config: {} }, /config\.profiles: is not set/],
  [
    'a network that pods do not reach',
    bad('node', { config: { runtime: { docker: { address: 'network', network: 'n' } } } }),
    /address: network; pods do not reach .* engine\.mode node/,
  ],
  [
    'an engine named twice',
    bad('remote', { config: { runtime: { docker: { socketPath: '/run/docker.sock' } } } }),
    /config\.runtime\.docker\.socketPath: is made of engine\.\*/,
  ],
  [
    'three replicas with a memory store',
    bad('memory', { replicaCount: 3 }),
    /replicaCount: 3, and config\.store\.type is memory/,
  ],
  [
    'two stores',
    bad('remote', { config: { store: { url: 'redis://elsewhere' } } }),
    /redis\.bundled: is true, and config\.store says something else/,
  ],
  [
    'a memory store beside a Redis',
    bad('remote', { config: { store: { type: 'memory' } } }),
    /redis\.bundled: is true/,
  ],
  ['no store', bad('remote', { redis: { bundled: false } }), /config\.store: names no Redis/],
  [
    'a variable without a value',
    bad('remote', { config: { log: { level: '${LEVEL}' } } }),
    /secret\.LEVEL: is not set, and config names \$\{LEVEL\}/,
  ],
  ['two secrets', bad('remote', { existingSecret: 'keys' }), /secret: is set, and existingSecret too/],
  [
    'a password that is no part of a url',
    bad('remote', { secret: { REDIS_PASSWORD: 'a@b' } }),
    /secret\.REDIS_PASSWORD: stands in a url/,
  ],
  [
    'a password beside the secret',
    bad('remote', { extraEnv: [{ name: 'REDIS_PASSWORD', value: 'x' }] }),
    /extraEnv: REDIS_PASSWORD comes from the secret/,
  ],
  [
    'an image of whoever takes its name in a public registry',
    bad('remote', { image: { repository: '' } }),
    /image\.repository: is not set; push the image/,
  ],
  ['nobody who may call', bad('remote', { config: { auth: { keys: [] } } }), /config\.auth\.keys: is empty/],
  ['a policy for everybody', bad('remote', { networkPolicy: { clients: [] } }), /networkPolicy\/clients': minItems/],
  ['a key that is not known', bad('remote', { replicas: 2 }), /additional properties 'replicas' not allowed/],
  [
    'a key of the configuration that is not known',
    bad('remote', { config: { lease: { ttl: '1s' } } }),
    /config\/lease': additional properties 'ttl'/,
  ],
  [
    'a key of a profile that is not known',
    bad('remote', { config: { profiles: { default: { cpu: 1 } } } }),
    /profiles\/default': additional properties 'cpu'/,
  ],
  [
    'a drain that is not written out',
    bad('remote', { config: { shutdown: { drainTimeout: '${DRAIN}' } } }),
    /drainTimeout': .*does not match pattern/,
  ],
  [
    'a broker that pods do not reach',
    bad('remote', { config: { server: { host: '127.0.0.1' } } }),
    /server\/host': value must be one of/,
  ],
  ['a duration without a unit', bad('remote', { config: { holds: { ttl: 900 } } }), /config\/holds\/ttl'/],
  [
    'a store that a variable makes a memory store',
    bad('remote', { config: { store: { type: '${STORE:-memory}' } } }),
    /config\/store\/type': value must be one of 'memory', 'redis'/,
  ],
  [
    'a network that a variable names',
    bad('node', { config: { runtime: { docker: { address: '${ADDRESS:-network}', network: 'n' } } } }),
    /docker\/address': value must be one of 'published', 'network'/,
  ],
  [
    'a label that selectors choose by',
    bad('remote', { commonLabels: { 'app.kubernetes.io/name': 'x' } }),
    /commonLabels: app\.kubernetes\.io\/name is the chart's own/,
  ],
  [
    'such a label of brokers only',
    bad('remote', { podLabels: { 'app.kubernetes.io/component': 'x' } }),
    /podLabels: app\.kubernetes\.io\/component is the chart's own/,
  ],
  [
    'no drain',
    bad('remote', { config: { shutdown: { drainTimeout: null } } }),
    /config\/shutdown': missing property 'drainTimeout'/,
  ],
  ['no shutdown', bad('remote', { config: { shutdown: null } }), /config': missing property 'shutdown'/],
  ['no port', bad('remote', { config: { server: { port: null } } }), /config\/server': missing property 'port'/],
];

test.each(REFUSED)('refused: %s', async (_name, values, reason) => {
  const { code, err, out } = await template(values);
  expect(err).toMatch(reason);
  expect(code).not.toBe(0);
  expect(out).toBe('');
});

test('everything that is wrong is told at once, and no secret with it', async () => {
  const values = over(EXAMPLES.remote, {
    engine: { remote: { host: '' } },
    secret: { REDIS_PASSWORD: 'p@ss' },
    config: { auth: { keys: [] } },
  });
  const { err } = await template(values);
  for (const key of ['engine.remote.host', 'secret.REDIS_PASSWORD', 'config.auth.keys'])
    expect(err).toContain(`${key}: `);
  expect(err).not.toContain('p@ss');
});
