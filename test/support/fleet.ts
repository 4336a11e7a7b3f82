import type { Redis } from 'ioredis';
import { afterAll, expect } from 'vitest';
import { sandboxId } from '../../src/domain/identity.ts';
import { asSandboxId } from '../../src/domain/ids.ts';
import { sandboxName } from '../../src/domain/names.ts';
import type { AcquiredBody } from '../../src/http/schemas.ts';
import { RedisKeys } from '../../src/leases/redis-keys.ts';
import { LABEL } from '../../src/runtime/labels.ts';
import type { AcquireWish, Person } from './broker-client.ts';
import { type BrokerOptions, type BrokerProcess, type LogLine, useBrokers } from './broker-process.ts';
import { dockerClient, eventually, newDeployment } from './docker.ts';
import { EngineProxy } from './engine-proxy.ts';
import { RedisServer } from './redis.ts';
import { useTinyImage } from './tiny-image.ts';

type Tree = NonNullable<BrokerOptions['overrides']>;

/** Every write is on disk before it is answered: the server comes back with all it had. */
export const DURABLE: readonly string[] = ['--appendonly', 'yes', '--appendfsync', 'always'];
export const LEASE_MS = 3_000;
/** What a loaded machine may add to a time that is told. */
export const SLACK_MS = 5_000;
const LIMIT_MS = 30_000;

export const CREATE = /^POST \/containers\/create/;
export const START = /^POST \/containers\/[^/]+\/start/;
export const RENAME = /^POST \/containers\/[^/]+\/rename/;
export const LIST = /^GET \/containers\/json/;
export const STOP = /^POST \/containers\/[^/]+\/stop/;

export interface FleetOptions {
  /** For every replica, laid over the settings of a fleet. */
  readonly settings?: Tree;
  /** Further lines for its Redis server. */
  readonly redis?: readonly string[];
}

/** A replica that reaches the engine through a proxy of its own. */
export interface Proxied {
  readonly replica: BrokerProcess;
  readonly proxy: EngineProxy;
}

type FleetParts = Pick<Fleet, 'deployment' | 'redis' | 'image'> & { start(settings: Tree): Promise<BrokerProcess> };

/** Several replicas share one Redis server of their own and the real engine. */
export class Fleet implements AsyncDisposable {
  readonly deployment: string;
  readonly redis: RedisServer;
  /** What its sandboxes are made of. */
  readonly image: string;
  readonly #start: (settings: Tree) => Promise<BrokerProcess>;
  readonly #keys: RedisKeys;
  readonly #replicas: BrokerProcess[] = [];
  readonly #proxies: EngineProxy[] = [];
  readonly #docker = dockerClient();

  constructor({ deployment, redis, image, start }: FleetParts) {
    this.deployment = deployment;
    this.redis = redis;
    this.image = image;
    this.#start = start;
    this.#keys = new RedisKeys('sandbox-broker', deployment);
  }

  /** A further replica that listens. */
  async launch(settings: Tree = {}): Promise<BrokerProcess> {
    const replica = await this.#start(settings);
    this.#replicas.push(replica);
    return replica;
  }

  /** A further replica, once it is ready. */
  async join(settings: Tree = {}): Promise<BrokerProcess> {
    const replica = await this.launch(settings);
    await replica.logged(({ event, ready }) => event === 'readiness' && ready === true);
    return replica;
  }

  /** A further replica that reaches the engine through a proxy of its own. */
  async joinThroughProxy(settings: Tree = {}, prepare: (proxy: EngineProxy) => void = () => {}): Promise<Proxied> {
    const proxy = await EngineProxy.open();
    this.#proxies.push(proxy);
    prepare(proxy);
    const { socketPath } = proxy;
    const runtime = { docker: { socketPath } };
    return { replica: await this.join(laidOver(settings, { runtime })), proxy };
  }

  /** All containers of the deployment, whatever their names and states. */
  async containers(): Promise<{ readonly id: string; readonly name: string; readonly state: string }[]> {
    const filters = { label: [`${LABEL.deployment}=${this.deployment}`] };
    const entries = await this.#docker.listContainers({ all: true, filters });
    return entries.map(({ Id, Names, State }) => ({ id: Id, name: (Names[0] ?? '').slice(1), state: State }));
  }

  /** The ids of those that have ever belonged to a sandbox: under its name, or condemned. */
  async containersOf(id: string): Promise<string[]> {
    return (await this.containers()).filter(({ name }) => name.includes(id)).map((container) => container.id);
  }

  idOf(who: Person, profile = 'default'): string {
    return sandboxId({ deployment: this.deployment, profile, ...who });
  }

  nameOf(id: string): string {
    return sandboxName(this.deployment, asSandboxId(id));
  }

  /** The container that has the sandbox's own name. */
  async containerOf(id: string): Promise<string> {
    return (await this.#docker.getContainer(this.nameOf(id)).inspect()).Id;
  }

  /** The sandbox's record as it is stored, or an empty object. */
  record(id: string, server = this.redis): Promise<Record<string, string>> {
    return this.ask((redis) => redis.hgetall(this.#keys.record(asSandboxId(id))), server);
  }

  /** Something done behind the brokers' backs. */
  async ask<T>(work: (redis: Redis) => Promise<T>, server = this.redis): Promise<T> {
    const client = server.client();
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const replica of this.#replicas) replica.signal('SIGKILL');
    await Promise.all(this.#replicas.map((replica) => replica.ended()));
    for (const replica of this.#replicas) await replica[Symbol.asyncDispose]();
    for (const proxy of this.#proxies) await proxy[Symbol.asyncDispose]();
    await this.redis[Symbol.asyncDispose]();
  }
}

/**
 * For one file: gives the function that opens fleets, and looks, when the file is through, for whatever they have left
 * behind.
 */
export function useFleets(): { readonly openFleet: (options?: FleetOptions) => Promise<Fleet> } {
  const { startBroker } = useBrokers();
  const tiny = useTinyImage();
  const servers: { readonly pid: number; readonly server: RedisServer }[] = [];

  afterAll(async () => {
    const left = servers.filter(({ pid }) => isAlive(pid)).map(({ pid }) => `redis-server ${pid}`);
    for (const { server } of servers) await server[Symbol.asyncDispose]();
    expect(left).toEqual([]);
  });

  async function openFleet({ settings = {}, redis: args = [] }: FleetOptions = {}): Promise<Fleet> {
    const deployment = newDeployment('fleet');
    const server = await RedisServer.start({ args, persistent: true });
    servers.push({ pid: server.pid, server });
    const shared = [fleetSettings(server.url), settings].reduce(laidOver, { deployment });
    const start = (own: Tree): Promise<BrokerProcess> =>
      startBroker({ overrides: withImage(laidOver(shared, own), tiny.name) });
    return new Fleet({ deployment, redis: server, image: tiny.name, start });
  }

  return { openFleet };
}

const fleetSettings = (url: string): Tree => ({
  store: { type: 'redis', url, commandTimeout: '700ms' },
  lease: { duration: `${LEASE_MS}ms`, renewInterval: '700ms' },
  reconcile: { interval: '500ms' },
  runtime: { docker: { timeout: '2900ms', stopGrace: '500ms' } },
  profiles: { default: {} },
});

/** Every profile is of the one image. */
function withImage(settings: Tree, image: string): Tree {
  const profiles = Object.entries(settings.profiles as Readonly<Record<string, Tree>>);
  return { ...settings, profiles: Object.fromEntries(profiles.map(([name, own]) => [name, { ...own, image }])) };
}

function laidOver(base: Tree, changes: Tree): Tree {
  const isTree = (value: unknown): value is Tree =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(changes)) {
    const below = merged[key];
    merged[key] = isTree(below) && isTree(value) ? laidOver(below, value) : value;
  }
  return merged;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A handout to begin with. As a client should, it asks again when a loaded machine's engine was too slow. */
export function acquired({ api }: BrokerProcess, who: Person, wish: AcquireWish = {}): Promise<AcquiredBody> {
  return eventually(async () => {
    const { status, body } = await api.acquire(who, wish);
    return status <= 201 && body;
  }, LIMIT_MS);
}

/** Waits until a replica has logged so many more lines of an event than before. */
export async function more(
  replica: BrokerProcess,
  event: string,
  count: number,
  fits: (line: LogLine) => boolean = () => true,
): Promise<void> {
  const lines = (): number => replica.events(event).filter(fits).length;
  const before = lines();
  await eventually(async () => lines() >= before + count, LIMIT_MS);
}

/** Watches a replica at work: until a pass of its reconciler ends `ms` from now, and at least two began after now. */
export async function watch(replica: BrokerProcess, ms: number): Promise<void> {
  const until = Date.now() + ms;
  const before = replica.events('reconcile-pass').length;
  const passes = (): LogLine[] => replica.events('reconcile-pass').slice(before);
  await eventually(async () => passes().length >= 3 && timeOf(passes().at(-1)!) >= until, ms + LIMIT_MS);
}

/** Waits until a loop has failed so many more times. */
export const failures = (replica: BrokerProcess, loop: string, count: number): Promise<void> =>
  more(replica, 'loop-failed', count, (line) => line.loop === loop);

export const timeOf = ({ time }: LogLine): number => Date.parse(time);

export async function answers(url: string | null): Promise<boolean> {
  const reply = await fetch(`${url}/v1/sandbox`).catch(() => null);
  await reply?.arrayBuffer();
  return reply?.status === 200;
}

/** What the replicas did that takes something away, or takes something over. */
export function deeds(...replicas: readonly BrokerProcess[]): string[] {
  const events = ['claimed', 'removed', 'removal-stopped', 'adopted', 'ended'];
  return replicas.flatMap(({ logs }) =>
    logs.filter(({ event }) => events.includes(event ?? '')).map(({ event, sandbox }) => `${event} ${sandbox}`),
  );
}
