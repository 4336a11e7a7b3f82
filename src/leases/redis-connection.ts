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
  /** Of the server at the other end; null while there is none. */
  #run: string | null = null;
  #opening = Promise.withResolvers<string>();
  #lastError: unknown = new Error('no connection yet');
  #closing: Promise<void> | null = null;

  constructor(address: RedisAddress) {
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
  async run(script: ScriptName, keys: readonly string[], owner: string, args: readonly string[]): Promise<unknown> {
    if (this.#closing !== null) throw storeClosed();
    try {
      const run = this.#run ?? (await this.#opened());
      return await this.#script(script)(keys.length, ...keys, owner, run, ...args);
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  async ping(): Promise<void> {
    if (this.#closing !== null) throw storeClosed();
    try {
      if (this.#run === null) await this.#opened();
      await this.#redis.ping();
    } catch (error) {
      throw storeUnavailable(error);
    }
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
    } catch (error) {
      this.#lastError = error;
      if (stream === this.#redis.stream && this.#closing === null) this.#redis.disconnect(true);
    }
  }

  #lost(cause: unknown): void {
    this.#run = null;
    this.#opening.reject(cause);
    this.#opening = Promise.withResolvers<string>();
    this.#opening.promise.catch(() => {});
  }

  /** Waits for an attempt to connect that is going on, as long as a command may take; for none that is only planned. */
  async #opened(): Promise<string> {
    const { status } = this.#redis;
    if (status !== 'connecting' && status !== 'connect' && status !== 'ready') {
      throw new Error(`not connected (${messageOf(this.#lastError)})`);
    }
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const late = Promise.withResolvers<never>();
    const onAbort = (): void => late.reject(new Error(`not connected in time (${messageOf(this.#lastError)})`));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([this.#opening.promise, late.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
