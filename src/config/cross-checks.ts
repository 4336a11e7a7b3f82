import { posix } from 'node:path';
import { loopbackOf } from './addresses.ts';
import type { Reader } from './reader.ts';
import type { Settings } from './schema.ts';

/** What has to hold between keys. Each rule names the key to change first, those it depends on, and the reason. */
export function crossCheck(settings: Settings, reader: Reader): void {
  timings(settings, reader);
  addresses(settings, reader);
  stores(settings, reader);
  profiles(settings, reader);
}

function timings({ lease, holds, acquire, store, runtime: { docker } }: Settings, reader: Reader): void {
  reader.rule(
    'lease.duration',
    ['lease.renewInterval'],
    lease.durationMs >= 2 * lease.renewIntervalMs,
    'a lease has to outlive one failed renewal, so it is at least twice the interval',
  );
  reader.rule(
    'store.commandTimeout',
    ['lease.renewInterval'],
    store.commandTimeoutMs <= lease.renewIntervalMs,
    'a renewal has to be answered, or given up, before the next one is due',
  );
  reader.rule(
    'runtime.docker.timeout',
    ['lease.duration'],
    docker.timeoutMs < lease.durationMs,
    'a container call has to end while the lease that it is made under still holds',
  );
  reader.rule(
    'runtime.docker.stopGrace',
    ['runtime.docker.timeout'],
    docker.stopGraceMs < docker.timeoutMs,
    'a stop lasts as long as its grace and has to end within the time of one call',
  );
  reader.rule(
    'holds.ttl',
    ['acquire.startTimeout'],
    holds.ttlMs >= acquire.startTimeoutMs,
    'a hold must not run out while its sandbox is still being started',
  );
}

function addresses({ server, auth, runtime: { docker } }: Settings, reader: Reader): void {
  reader.rule(
    'server.host',
    ['auth.keys'],
    auth.keys.length > 0 || loopbackOf(server.host) !== null,
    'without a key the broker listens on a loopback address only; set auth.keys',
  );
  distinct('auth.keys', 'name', auth.keys, ({ name }) => name, reader);
  distinct('auth.keys', 'key', auth.keys, ({ key }) => key, reader);
  reader.rule(
    'runtime.docker.bindHost',
    ['runtime.docker.advertiseHost'],
    docker.bindHost !== null || loopbackOf(docker.advertiseHost) !== null,
    'for an advertiseHost that is not a loopback address it has to be said where sandboxes are reachable',
  );
  reader.rule(
    'runtime.docker.network',
    ['runtime.docker.address'],
    docker.address !== 'network' || docker.network !== null,
    'with address network, clients reach sandboxes on a network that they know by name',
  );
  reader.rule(
    'runtime.docker.host',
    ['runtime.docker.socketPath'],
    docker.host === null || docker.socketPath === null,
    'the engine is at one of the two',
  );
  for (const key of ['port', 'tls'] as const) {
    reader.rule(
      `runtime.docker.${key}`,
      ['runtime.docker.host'],
      docker[key] === null || docker.host !== null,
      'it belongs to runtime.docker.host, which is not set',
    );
  }
}

function stores({ store }: Settings, reader: Reader): void {
  reader.rule(
    'store.sentinelName',
    ['store.sentinels'],
    (store.sentinelName === null) === (store.sentinels.length === 0),
    'sentinels and the name of their group are set together',
  );
}

function profiles({ profiles: all, acquire }: Settings, reader: Reader): void {
  for (const [name, profile] of Object.entries(all)) {
    reader.rule(
      `profiles.${name}.readiness.timeout`,
      ['acquire.startTimeout'],
      profile.readiness.timeoutMs <= acquire.startTimeoutMs,
      'waiting until ready is a part of the start',
    );
    const place = ({ target }: { readonly target: string }): string =>
      posix.normalize(`${target}/`).replace(/^\/+/, '/');
    distinct(`profiles.${name}.mounts`, 'target', profile.mounts, place, reader);
  }
}

/** No two items of a list may have the same value under a key. */
function distinct<T>(at: string, key: string, items: readonly T[], of: (item: T) => string, reader: Reader): void {
  const firsts = new Map<string, number>();
  items.forEach((item, index) => {
    const first = firsts.get(of(item));
    if (first === undefined) firsts.set(of(item), index);
    reader.rule(`${at}[${index}].${key}`, [`${at}[${first ?? index}].${key}`], first === undefined, 'it is used twice');
  });
}
