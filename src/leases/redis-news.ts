import { Redis } from 'ioredis';
import type { News, NewsListener } from './lease-store.ts';
import { type RedisAddress, redisOptions } from './redis-options.ts';

/** After so long without a word, the operating system asks whether the other end is still there. */
const PROBE_AFTER_MS = 10_000;

/**
 * A connection of its own that hears what the scripts publish, opened for the first listener. It comes back by itself
 * and subscribes again; what was published meanwhile is missed.
 */
export class RedisNews {
  readonly #address: RedisAddress;
  readonly #channel: string;
  readonly #listeners = new Set<NewsListener>();
  #redis: Redis | null = null;
  #closed = false;

  constructor(address: RedisAddress, channel: string) {
    this.#address = address;
    this.#channel = channel;
  }

  listen(listener: NewsListener): () => void {
    this.#listeners.add(listener);
    if (!this.#closed) this.#redis ??= this.#open();
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    this.#redis?.disconnect();
  }

  #open(): Redis {
    const redis = new Redis({ ...redisOptions(this.#address), autoResubscribe: false, keepAlive: PROBE_AFTER_MS });
    redis.on('error', () => {}); // the connection for commands tells what is wrong
    redis.on('ready', () => void this.#subscribe(redis));
    redis.on('message', (_channel, text: string) => this.#tell(text));
    redis.connect().catch(() => {});
    return redis;
  }

  /** A server that refuses is left alone: nobody needs the news. One that does not answer is tried anew. */
  async #subscribe(redis: Redis): Promise<void> {
    try {
      await redis.subscribe(this.#channel);
    } catch (error) {
      const refused = error instanceof Error && error.name === 'ReplyError';
      if (!refused && !this.#closed) redis.disconnect(true);
    }
  }

  #tell(text: string): void {
    const [news, user] = text.split(':') as [News, string | undefined];
    for (const listener of this.#listeners) listener(news, user === undefined || user === '' ? null : user);
  }
}
