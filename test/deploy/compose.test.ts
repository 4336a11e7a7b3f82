import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load-config.ts';
import { MAX_WAIT_MS } from '../../src/http/schemas.ts';

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly hostname?: string;
  readonly networks: readonly string[] | Readonly<Record<string, { readonly aliases?: readonly string[] }>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly stop_grace_period?: string;
  readonly [key: string]: unknown;
}

const root = resolve(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(resolve(root, name), 'utf8');
const text = read('docker-compose.yml');
const file = parse(text, { merge: true }) as {
  services: Readonly<Record<string, Service>>;
  networks: Readonly<Record<string, { name?: string; internal?: boolean }>>;
  volumes: Readonly<Record<string, unknown>>;
};
const BROKERS = ['broker-1', 'broker-2', 'broker-3'];
const services = Object.entries(file.services);
const brokers = BROKERS.map((name) => file.services[name]!);
const SECRETS = ['BROKER_API_KEY', 'REDIS_PASSWORD', 'GRAFANA_PASSWORD', 'DOCKER_GID'];
/** Values that compose would put in: what the file gives, or a stand-in for what has to be set. */
const filled = (value: string): string =>
  value.replaceAll(
    /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g,
    (_all, name: string, initial?: string) => initial ?? `${name}-1`,
  );
const networksOf = ({ networks }: Service): readonly string[] =>
  Array.isArray(networks) ? networks : Object.keys(networks);
const on = (network: string): readonly string[] =>
  services.filter(([, service]) => networksOf(service).includes(network)).map(([name]) => name);
const seconds = (duration: string | undefined): number => Number(/^(\d+)s$/.exec(duration ?? '')?.[1]);

function brokerConfig({ environment = {} }: Service): ReturnType<typeof loadConfig> {
  const env = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, filled(value)]));
  return loadConfig({
    path: resolve(root, 'deploy/compose/broker.yaml'),
    env,
    readFile: (path) => readFileSync(path, 'utf8'),
  });
}

test('three brokers that differ in nothing but their names', () => {
  expect(services.map(([name]) => name).filter((name) => name.startsWith('broker'))).toEqual(BROKERS);
  const named = (name: string): unknown => JSON.parse(JSON.stringify(file.services[name]).replaceAll(name, 'broker-N'));
  for (const name of BROKERS) expect(named(name)).toEqual(named('broker-1'));
});

test('every service is restricted, bounded, restarted, and of an image with a version', () => {
  for (const [name, service] of services) {
    expect(service, name).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
      mem_limit: expect.any(String),
      pids_limit: expect.any(Number),
      logging: { options: { 'max-size': expect.any(String), 'max-file': expect.any(String) } },
    });
    expect(service).not.toHaveProperty('privileged');
    expect(service).not.toHaveProperty('network_mode');
    expect(filled(service.image), name).toMatch(/^[\w./-]+:(?!latest)[\w.-]+$/);
  }
});

test('a sandbox shares a network with the brokers alone, and their API does not listen there', () => {
  expect(on('sandboxes')).toEqual(BROKERS);
  for (const service of brokers) {
    const networks = service.networks as Readonly<Record<string, { aliases?: readonly string[] }>>;
    const config = brokerConfig(service);
    expect(networks.control?.aliases).toEqual([config.server.host]);
    expect(networks.sandboxes?.aliases).toBeUndefined();
    expect(networks.store?.aliases).toBeUndefined();
    // Compose gives every service its own name on all of its networks; that one must not be what the broker listens on.
    expect(Object.keys(file.services)).not.toContain(config.server.host);
    expect(service.hostname).not.toBe(config.server.host);
    expect(service.environment?.HEALTH_URL).toBe(`http://${config.server.host}:${config.server.port}/healthz`);
  }
});

test('Redis is reached by brokers alone, and nothing is published but on loopback', () => {
  expect(on('store')).toEqual([...BROKERS, 'redis']);
  expect(on('control')).toEqual([...BROKERS, 'lb', 'prometheus']);
  expect(on('front')).toEqual(['lb', 'grafana']);
  const open = Object.entries(file.networks).filter(([, network]) => !network?.internal);
  expect(open.map(([name]) => name)).toEqual(['front']);
  for (const [name, { ports = [] }] of services) {
    for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/);
  }
  expect(services.filter(([, { ports }]) => ports !== undefined).map(([name]) => name)).toEqual(['lb', 'grafana']);
});

test('the brokers’ configuration is valid, keyed, and names the network that compose makes', () => {
  for (const service of brokers) {
    const config = brokerConfig(service);
    expect(config.auth.keys).toEqual([{ name: 'gateway', key: 'BROKER_API_KEY-1' }]);
    expect(config.store).toMatchObject({ type: 'redis', url: 'redis://:REDIS_PASSWORD-1@redis:6379/0' });
    expect(config.runtime.docker).toMatchObject({
      address: 'network',
      network: filled(file.networks.sandboxes!.name!),
    });
    expect(config.shutdown.sandboxes).toBe('keep');
  }
});

test('every service tells whether it works: by its own check, or by the one of the broker’s image', () => {
  for (const [name, { healthcheck }] of services) {
    if (BROKERS.includes(name)) expect(read('Dockerfile')).toMatch(/^HEALTHCHECK /m);
    else
      expect(healthcheck, name).toMatchObject({ test: expect.arrayContaining(['CMD']), timeout: expect.any(String) });
  }
  // redis-cli ends with 0 whatever Redis answers, unless told otherwise.
  expect(file.services.redis!.healthcheck).toMatchObject({ test: ['CMD', 'redis-cli', '-e', 'ping'] });
});

test('[S-01] a stop is given longer than the drain', () => {
  for (const service of brokers) {
    expect(seconds(service.stop_grace_period) * 1_000).toBeGreaterThanOrEqual(
      brokerConfig(service).shutdown.drainTimeoutMs + 10_000,
    );
  }
});

test('[G-07] Redis keeps what it is given: nothing evicted, everything on a volume', () => {
  const { command = [], volumes = [], environment } = file.services.redis!;
  const option = (name: string): string | undefined => command[command.indexOf(name) + 1];
  expect(option('--maxmemory-policy')).toBe('noeviction');
  expect(option('--appendonly')).toBe('yes');
  expect(option('--save')).toBe('');
  expect(option('--requirepass')).toBe(environment?.REDISCLI_AUTH);
  expect(volumes).toEqual([`redis-data:${option('--dir')}`]);
});

test('keys have no default, and the example file names every variable', () => {
  const variables = new Map(
    [...text.matchAll(/\$\{(\w+)(:[-?][^}]*)?\}/g)].map(([, name, rest]) => [name!, rest ?? '']),
  );
  for (const name of SECRETS) {
    const uses = [...text.matchAll(new RegExp(`\\$\\{${name}([^}]*)\\}`, 'g'))].map(([, rest]) => rest!);
    expect(
      uses.some((rest) => rest.startsWith(':?')),
      name,
    ).toBe(true);
    expect(
      uses.some((rest) => rest.startsWith(':-')),
      name,
    ).toBe(false);
  }
  const example = read('deploy/compose/.env.example');
  expect(example.match(/^[A-Z_]+=.*$/gm)).toEqual(SECRETS.map((name) => `${name}=`));
  for (const [, name, value] of example.matchAll(/^#([A-Z_]+)=(.*)$/gm))
    expect(variables.get(name!), name).toBe(`:-${value}`);
  const images = /^(HAPROXY|REDIS|PROMETHEUS|GRAFANA)_IMAGE$/;
  const missing = [...variables.keys()].filter(
    (name) => !images.test(name) && !new RegExp(`^#?${name}=`, 'm').test(example),
  );
  expect(missing).toEqual([]);
  expect(read('.gitignore').split('\n')).toContain('/.env');
});

test('the runbook’s commands for compose have its names and defaults', () => {
  const [, block = ''] = /```sh\n(# docker compose, .*?)```/s.exec(read('docs/runbook.md')) ?? [];
  for (const variable of ['${BROKER_PORT:-8080}', '${DEPLOYMENT:-compose}']) {
    expect(block).toContain(variable);
    expect(text).toContain(variable);
  }
  for (const [, name = ''] of block.matchAll(/(?:exec -T|--tail \d+) ([\w-]+)/g))
    expect(Object.keys(file.services)).toContain(name);
  // What redis-cli is allowed by, inside of that container.
  expect(file.services.redis!.environment).toHaveProperty('REDISCLI_AUTH');
});

test('every file that is mounted is there, and every volume is declared', () => {
  for (const source of services.flatMap(([, { volumes = [] }]) => volumes.map((line) => filled(line).split(':')[0]!))) {
    if (source.startsWith('./')) expect(existsSync(resolve(root, source)), source).toBe(true);
    else if (!source.startsWith('/')) expect(Object.keys(file.volumes)).toContain(source);
  }
});

test('load balancer and Prometheus know each broker, under the job that dashboard and alerts mean', () => {
  const addresses = brokers.map((service) => {
    const { host, port } = brokerConfig(service).server;
    return `${host}:${port}`;
  });
  const haproxy = read('deploy/compose/haproxy.cfg');
  expect([...haproxy.matchAll(/^\s+server \S+ (\S+)/gm)].map(([, address]) => address)).toEqual(addresses);
  expect(haproxy).toContain('option httpchk GET /readyz');
  // Each replica at most once: what all of them refuse is not asked for again and again.
  expect(haproxy).toContain(`\n  retries ${BROKERS.length - 1}\n`);
  expect(haproxy).toContain('option redispatch 1\n');
  expect(seconds(/timeout server (\S+)/.exec(haproxy)?.[1]) * 1_000).toBeGreaterThan(MAX_WAIT_MS);
  const prometheus = parse(read('deploy/compose/prometheus.yml'));
  expect(prometheus.scrape_configs).toEqual([{ job_name: 'sandbox-broker', static_configs: [{ targets: addresses }] }]);
  expect(prometheus.rule_files).toEqual(['alerts.yaml']);
  const dashboards = parse(read('deploy/compose/grafana/dashboards.yaml')).providers[0].options.path;
  expect(file.services.grafana!.volumes!.some((line) => line.includes(`:${dashboards}/`))).toBe(true);
  const [source] = parse(read('deploy/compose/grafana/datasources.yaml')).datasources;
  expect(source).toMatchObject({ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true });
});
