import type { RedisOptions } from 'ioredis';

export interface RedisAddress {
  /** `redis://` or `rediss://`; with sentinels only its user, password and database count. */
  readonly url: string | null;
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  readonly sentinelName: string | null;
  readonly commandTimeoutMs: number;
}

type ServerOptions = Pick<RedisOptions, 'host' | 'port' | 'username' | 'password' | 'db' | 'tls'>;
type ClientOptions = RedisOptions & { readonly replyMapping: 'legacy' };

/** Longest pause between two attempts to connect, in milliseconds. */
const RECONNECT_PAUSE_MS = 1_000;

/**
 * A client that never queues a command for later and never sends one twice: a call is answered in time or fails, and
 * its caller decides. Commands on a connection that has gone silent end with it, so they do not pile up.
 */
export function redisOptions({ url, sentinels, sentinelName, commandTimeoutMs }: RedisAddress): ClientOptions {
  const options: ClientOptions = {
    replyMapping: 'legacy',
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    socketTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
    maxLoadingRetryTime: RECONNECT_PAUSE_MS,
    retryStrategy: (attempt) => Math.min(attempt * 50, RECONNECT_PAUSE_MS),
    reconnectOnError: ({ message }) => message.includes('READONLY'),
  };
  const server: ServerOptions = url === null ? {} : serverOf(new URL(url));
  if (sentinels.length === 0) return { ...options, ...server };
  const { host: _, port: __, ...login } = server;
  return {
    ...options,
    ...login,
    sentinels: [...sentinels],
    ...(sentinelName === null ? {} : { name: sentinelName }),
    sentinelCommandTimeout: commandTimeoutMs,
    sentinelRetryStrategy: (attempt) => Math.min(attempt * 50, RECONNECT_PAUSE_MS),
    ...(login.tls === undefined ? {} : { enableTLSForSentinelMode: true }),
  };
}

function serverOf({ protocol, hostname, port, username, password, pathname }: URL): ServerOptions {
  const database = pathname.slice(1);
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 6379 : Number(port),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(database === '' ? {} : { db: Number(database) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}
