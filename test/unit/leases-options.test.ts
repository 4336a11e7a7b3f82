import { expect, test } from 'vitest';
import { redisOptions } from '../../src/leases/redis-options.ts';

const address = { url: null, sentinels: [], sentinelName: null, commandTimeoutMs: 2_000 };

test('[L-22] the client never keeps a command for later and never sends one twice', () => {
  const options = redisOptions({ ...address, url: 'redis://127.0.0.1:6379/0' });
  expect(options).toMatchObject({ maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: 2_000 });
  expect(options).toMatchObject({ socketTimeout: 2_000, connectTimeout: 2_000 });
  expect(options.autoResendUnfulfilledCommands).toBeUndefined();
  expect(options.reconnectOnError?.(new Error("READONLY You can't write"))).toBe(true);
  expect(options.reconnectOnError?.(new Error('OOM'))).toBe(false);
});

test('it goes on trying to connect, at least once a second', () => {
  const { retryStrategy } = redisOptions(address);
  expect([1, 2, 1_000].map((attempt) => retryStrategy?.(attempt))).toEqual([50, 100, 1_000]);
});

test('a url names host, port, user, password and database', () => {
  const plain = redisOptions({ ...address, url: 'redis://us%40er:p%2Fw@redis.example:7000/3' });
  expect(plain).toMatchObject({ host: 'redis.example', port: 7_000, username: 'us@er', password: 'p/w', db: 3 });
  expect(plain.tls).toBeUndefined();
  expect(redisOptions({ ...address, url: 'rediss://[::1]' })).toMatchObject({ host: '::1', port: 6_379, tls: {} });
});

test('with sentinels only the login of the url counts', () => {
  const sentinels = [{ host: 's1', port: 26_379 }];
  const url = 'rediss://:secret@ignored:1/2';
  const options = redisOptions({ ...address, url, sentinels, sentinelName: 'group' });
  expect(options).toMatchObject({
    sentinels,
    name: 'group',
    password: 'secret',
    db: 2,
    enableTLSForSentinelMode: true,
  });
  expect(options.host).toBeUndefined();
  expect(options.port).toBeUndefined();
});
