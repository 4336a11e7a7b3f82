import { BlockList, isIP } from 'node:net';

/** The loopback address to bind for a loopback host; null for any other host. */
export function loopbackOf(host: string): string | null {
  if (host.toLowerCase() === 'localhost') return '127.0.0.1';
  const family = isIP(host) === 6 ? 'ipv6' : 'ipv4';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  if (isIP(host) === 0 || !loopback.check(host, family)) return null;
  if (family === 'ipv4') return host;
  return new URL(`http://[${host}]`).hostname === '[::1]' ? '::1' : '127.0.0.1';
}

export function isRedisUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'redis:' && url.protocol !== 'rediss:')) return false;
  const whole = url.hostname !== '' && url.search === '' && url.hash === '' && /^(\/\d*)?$/.test(url.pathname);
  return whole && isDecodable(url.username) && isDecodable(url.password);
}

/** A Redis url without what is before the host or behind the database: there may be a password. */
export function showRedisUrl(given: unknown): string {
  if (given === null) return 'null';
  const [, scheme, credentials, rest] = /^(rediss?:\/\/)(.*@)?([^?#@]*)/s.exec(String(given)) ?? [];
  if (scheme === undefined) return '(hidden)';
  return JSON.stringify(`${scheme}${credentials === undefined ? '' : '***@'}${rest}`);
}

export type DockerHost =
  | { readonly kind: 'socket'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number | null };

/** Reads what DOCKER_HOST may hold: `unix:///path` or `tcp://host[:port]`; null for anything else. */
export function parseDockerHost(text: string): DockerHost | null {
  if (/^unix:\/\/\/./.test(text)) return { kind: 'socket', socketPath: text.slice('unix://'.length) };
  const url = /^tcp:\/\//.test(text) ? URL.parse(text) : null;
  if (url === null || url.hostname === '' || url.port === '0') return null;
  if (!/^\/?$/.test(url.pathname) || url.username || url.password || url.search || url.hash) return null;
  return {
    kind: 'tcp',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? null : Number(url.port),
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
