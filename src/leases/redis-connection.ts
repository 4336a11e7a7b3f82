import { Redis } from 'ioredis';
import { messageOf } from '../domain/errors.ts';
import { type RedisAddress, redisOptions } from './redis-options.ts';
import { loadScripts, type ScriptName } from './redis-scripts.ts';
import { storeClosed, storeUnavailable } from './refusals.ts';

type Script = (keyCount: number, ...keysAndArguments: string[]) => Promise<unknown>;

/**
 * One connection that comes back by itself. Before anything else is sent on it, the server is asked for its run id:
 * a script that gets another one than the store's life began under begins a new life.
 */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #timeoutMs: number;
  readonly #evicts: (policy: string) => void;
  /** Of the server at the other end; null while there is none. */
  #run: string | null = null;
  #opening = Promise.withResolvers<string>();
  #lastError: unknown = new Error('no connection yet');
  #closing: Promise<void> | null = null;

  /** `evicts` is told the server's `maxmemory-policy` on each connection, if it is one that throws keys away. */
  constructor(address: RedisAddress, evicts: (policy: string) => void) {
    this.#evicts = evicts;
    this.#timeoutMs = address.commandTimeoutMs;
    this.#redis = new Redis(redisOptions(address));
    for (const [name, lua] of loadScripts()) this.#redis.defineCommand(`broker:${name}`, { lua });
    this.#redis.on('error', (error) => {
      this.#lastError = error;
    });
    this.#redis.on('ready', () => void this.#greet());
    this.#redis.on('close', () => this.#lost(this.#lastError));
    this.#opening.promise.catch(() => {});
    this.#redis.connect().catch(() => {});
  }

  /**
   * Runs a script, once. `args`: what follows the server's run id, which follows the owner. Rejects with
   * `store_unavailable`; it may have been run all the same.
   */
  run(script: ScriptName, keys: readonly string[], owner: string, args: readonly string[]): Promise<unknown> {
    return this.#send((run) => this.#script(script)(keys.length, ...keys, owner, run, ...args));
  }

  async ping(): Promise<void> {
    await this.#send(() => this.#redis.ping());
  }

  /** Lets what is under way finish, within the command timeout. Memoised. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      if (this.#run !== null) await this.#redis.quit();
    } catch {
      // It is being left anyway.
    } finally {
      this.#redis.disconnect();
      this.#lost(storeClosed());
    }
  }

  #script(name: ScriptName): Script {
    const scripts = this.#redis as unknown as Record<string, Script>;
    return scripts[`broker:${name}`]!.bind(this.#redis);
  }

  async #greet(): Promise<void> {
    const { stream } = this.#redis;
    try {
      const info = await this.#redis.info('server');
      const run = /^run_id:(\S+)/m.exec(info)?.[1];
      if (run === undefined) throw new Error('the server does not tell its run_id');
      if (stream !== this.#redis.stream) return;
      this.#run = run;
      this.#opening.resolve(run);
      this.#noteEviction(await this.#redis.info('memory'));
    } catch (error) {
      this.#lastError = error;
      if (stream === this.#redis.stream && this.#closing === null) this.#redis.disconnect(true);
    }
  }

  /** A server that may throw keys away loses leases as if nobody had held them. */
  #noteEviction(info: string): void {
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
    if (policy !== undefined && policy !== 'noeviction') this.#evicts(policy);
  }

  #lost(cause: unknown): void {
    this.#run = null;
    this.#opening.reject(cause);
    this.#opening = Promise.withResolvers<string>();
    this.#opening.promise.catch(() => {});
  }

  async #send<T>(command: (run: string) => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw storeClosed();
    try {
      return await (this.#run === null ? this.#inTime(this.#opened().then(command)) : command(this.#run));
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  /** Waits for an attempt to connect that is going on; not for one that is only planned. */
  async #opened(): Promise<string> {
    const { status } = this.#redis;
    if (status === 'connecting' || status === 'connect' || status === 'ready') return this.#opening.promise;
    throw new Error(`not connected (${messageOf(this.#lastError)})`);
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(new Error(`not connected in time (${messageOf(this.#lastError)})`));
    const timer = setTimeout(giveUp, this.#timeoutMs);
    try {
      return await Promise.race([work, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
