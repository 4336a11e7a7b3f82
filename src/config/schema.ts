import { duration, flag, nullable, number, oneOf, pem, type Read, secret, size, text } from './fields.ts';
import * as rules from './rules.ts';
import { list, record, section } from './shapes.ts';

const COUNT = { from: 1, to: 1_000_000 };
const PORT = { from: 1, to: 65_535 };

const profile = section({
  image: text(rules.IMAGE, 'sandbox-broker/sandbox:local'),
  pull: oneOf(['always', 'if-missing', 'never'], 'if-missing'),
  registryAuth: nullable(section({ username: text(rules.NOT_EMPTY), password: secret(rules.NOT_EMPTY) })),
  onSpecChange: oneOf(['keep', 'replace']),
  port: number(PORT, 8080),
  readiness: section({ path: text(rules.HTTP_PATH, '/v1/sandbox'), timeout: duration('60s') }),
  environment: record(rules.VARIABLE_NAME, secret(rules.VARIABLE_VALUE), { initial: {} }),
  mounts: list(section({ source: text(rules.MOUNT_SOURCE), target: text(rules.MOUNT_TARGET), readOnly: flag(false) })),
  resources: section({
    memory: size('512MiB', '6MiB'),
    cpus: number({ from: 0.01, to: 1024, fraction: true }, 1),
    pids: number({ from: 1, to: 4_194_304 }, 256),
    shm: size('64MiB', '1KiB'),
  }),
  security: section({
    readOnlyRoot: flag(false),
    capAdd: list(text(rules.CAPABILITY)),
    seccomp: text(rules.SECCOMP, 'default'),
    runtime: nullable(text(rules.OCI_RUNTIME)),
  }),
  spares: number({ from: 0, to: COUNT.to }, 0),
});

/** Every key of the configuration: its type, its default, and what may be written there. */
export const schema = section({
  deployment: text(rules.DEPLOYMENT, 'default'),
  server: section({ host: text(rules.HOST, '127.0.0.1'), port: number({ ...PORT, from: 0 }, 8080) }),
  auth: section({ keys: list(section({ name: text(rules.NAME), key: secret(rules.API_KEY) })) }),
  store: section({
    type: nullable(oneOf(['memory', 'redis'])),
    url: nullable(text(rules.REDIS_URL)),
    sentinels: list(section({ host: text(rules.HOST), port: number(PORT, 26_379) })),
    sentinelName: nullable(text(rules.NAME)),
    keyPrefix: text(rules.KEY_PREFIX, 'sandbox-broker'),
    commandTimeout: duration('2s'),
  }),
  lease: section({ duration: duration('30s'), renewInterval: duration('10s') }),
  holds: section({ ttl: duration('15m') }),
  idle: section({ timeout: duration('10m', 'never'), checkInterval: duration('15s') }),
  reconcile: section({ interval: duration('30s') }),
  acquire: section({
    wait: duration('50s', 'do not wait'),
    startTimeout: duration('120s'),
    parallelStarts: number(COUNT, 4),
  }),
  capacity: section({
    max: number(COUNT, 100),
    perUser: number({ from: 0, to: COUNT.to }, 0),
    waitTimeout: duration('30s', 'do not wait'),
  }),
  runtime: section({
    docker: section({
      socketPath: nullable(text(rules.SOCKET_PATH)),
      host: nullable(text(rules.HOST)),
      port: nullable(number(PORT)),
      tls: nullable(section({ ca: pem(), cert: pem(), key: pem() })),
      timeout: duration('10s'),
      stopGrace: duration('2s', 'kill at once'),
      namePrefix: text(rules.NAME_PREFIX, 'sandbox'),
      address: oneOf(['published', 'network']),
      network: nullable(text(rules.NETWORK)),
      advertiseHost: text(rules.HOST, '127.0.0.1'),
      bindHost: nullable(text(rules.IP)),
      probeHost: nullable(text(rules.HOST)),
    }),
  }),
  shutdown: section({ drainTimeout: duration('25s'), sandboxes: nullable(oneOf(['keep', 'destroy'])) }),
  profiles: record(rules.PROFILE_NAME, profile, { initial: { default: profile.initial }, least: 1 }),
  log: section({ level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info') }),
});

/** What a file says, defaults put in, in units; not yet what follows from the environment or from other keys. */
export type Settings = Read<typeof schema>;
