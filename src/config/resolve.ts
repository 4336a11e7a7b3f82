import { loopbackOf, parseDockerHost } from './addresses.ts';
import type { BrokerConfig, EngineAddress, EngineTls } from './broker-config.ts';
import { readPem } from './fields.ts';
import type { Reader } from './reader.ts';
import { REDIS_URL } from './rules.ts';
import type { Settings } from './schema.ts';
import { fits } from './text-rule.ts';

const DEFAULT_SOCKET = '/var/run/docker.sock';
const PLAIN_PORT = 2375;
const TLS_PORT = 2376;

/** Adds what follows from REDIS_URL, DOCKER_HOST and from other keys. Reports to the reader; then it is no result. */
export function resolve(settings: Settings, reader: Reader): BrokerConfig {
  const { socketPath, host, port, tls, bindHost, probeHost, ...docker } = settings.runtime.docker;
  const store = resolveStore(settings.store, reader);
  const profiles = Object.entries(settings.profiles);
  return Object.freeze({
    ...settings,
    store,
    runtime: Object.freeze({
      docker: Object.freeze({
        ...docker,
        engine: Object.freeze(resolveEngine({ socketPath, host, port, tls }, reader)),
        bindHost: bindHost ?? loopbackOf(docker.advertiseHost) ?? '',
        probeHost: probeHost ?? docker.advertiseHost,
      }),
    }),
    shutdown: Object.freeze({
      ...settings.shutdown,
      sandboxes: settings.shutdown.sandboxes ?? (store.type === 'redis' ? 'keep' : 'destroy'),
    }),
    profiles: new Map(profiles.map(([name, profile]) => [name, Object.freeze({ name, ...profile })])),
  });
}

/** An explicit type wins; else Redis if an address is known, from the file or from REDIS_URL; else memory. */
function resolveStore(store: Settings['store'], reader: Reader): BrokerConfig['store'] {
  if (store.type === 'memory') return Object.freeze({ ...store, type: 'memory' });
  const url = store.url ?? redisUrlOf(reader);
  const known = url !== null || store.sentinels.length > 0;
  reader.rule(
    'store.type',
    ['store.url', 'store.sentinels'],
    store.type === null || known,
    'there is no address; set store.url, REDIS_URL or store.sentinels',
  );
  return Object.freeze({ ...store, type: known ? 'redis' : 'memory', url });
}

function redisUrlOf(reader: Reader): string | null {
  const url = variable('REDIS_URL', reader);
  if (url === null || fits(REDIS_URL, url)) return url;
  reader.refuse('REDIS_URL', `its value is not allowed; allowed: ${REDIS_URL.allowed}`);
  return null;
}

/** The file's engine, else that of DOCKER_HOST, else the usual socket. */
function resolveEngine(
  given: Pick<Settings['runtime']['docker'], 'socketPath' | 'host' | 'port' | 'tls'>,
  reader: Reader,
): EngineAddress {
  const { socketPath, host, port, tls } = given;
  if (host !== null) return tcp(host, port, tls);
  if (socketPath !== null) return { kind: 'socket', socketPath };
  const text = variable('DOCKER_HOST', reader);
  if (text === null) return { kind: 'socket', socketPath: DEFAULT_SOCKET };
  const address = parseDockerHost(text);
  if (address?.kind === 'tcp') return tcp(address.host, address.port, tlsOfEnvironment(reader));
  if (address !== null) return address;
  reader.refuse('DOCKER_HOST', 'its value is not allowed; allowed: unix:///path or tcp://host[:port]');
  return { kind: 'socket', socketPath: DEFAULT_SOCKET };
}

function tcp(host: string, port: number | null, tls: EngineTls | null): EngineAddress {
  return { kind: 'tcp', host, port: port ?? (tls === null ? PLAIN_PORT : TLS_PORT), tls };
}

/** As Docker's own client: any DOCKER_TLS_VERIFY asks for TLS, with the three files of DOCKER_CERT_PATH. */
function tlsOfEnvironment(reader: Reader): EngineTls | null {
  if (variable('DOCKER_TLS_VERIFY', reader) === null) return null;
  const folder = variable('DOCKER_CERT_PATH', reader);
  if (folder === null) {
    reader.refuse('DOCKER_CERT_PATH', 'is not set; DOCKER_TLS_VERIFY asks for the ca.pem, cert.pem and key.pem in it');
    return null;
  }
  const read = (name: string): string => {
    const content = readPem(`${folder}/${name}`, reader.surroundings);
    if (content === undefined) reader.refuse('DOCKER_CERT_PATH', `${name} in it cannot be read as PEM`);
    return content ?? '';
  };
  return Object.freeze({ ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') });
}

/** A variable's value; an empty one counts as not set. */
function variable(name: string, { surroundings: { env } }: Reader): string | null {
  return (Object.hasOwn(env, name) ? env[name] : undefined) || null;
}
