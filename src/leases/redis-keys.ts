import { createHash } from 'node:crypto';
import type { SandboxId } from '../domain/ids.ts';

/**
 * The keys of one deployment, all in one hash slot, so that scripts may touch several of them. Nothing that a user
 * chose is part of a key.
 */
export class RedisKeys {
  /** What every script is given, in the order of `lua/lib/context.lua`. */
  readonly common: readonly string[];
  readonly life: string;
  readonly index: string;
  readonly engine: string;
  /** The pool, the spares in it, and those that were taken out. */
  readonly spares: readonly string[];
  readonly spareTender: string;
  /** In which life the running containers were counted. */
  readonly census: string;
  /** What scripts are given last. */
  readonly unheld: string;
  /** A channel, not a key. */
  readonly news: string;
  readonly #prefix: string;

  constructor(keyPrefix: string, deployment: string) {
    this.#prefix = `${keyPrefix}:{${deployment}}:`;
    const key = (name: string): string => `${this.#prefix}${name}`;
    this.life = key('life');
    this.index = key('index');
    this.engine = key('engine');
    this.spares = [key('pool'), key('spares'), key('taken-spares')];
    this.spareTender = key('spare-tender');
    this.census = key('census');
    this.unheld = key('unheld');
    this.news = key('news');
    this.common = [this.life, key('fence'), this.index, key('counted'), key('users'), key('tombstones')];
  }

  history(id: SandboxId): { readonly life: string; readonly use: string } {
    const life = `${this.#prefix}history:${id}`;
    return { life, use: `${life}:use` };
  }

  record(id: SandboxId): string {
    return `${this.#prefix}sandbox:${id}`;
  }
}

/** What the pool knows a profile and spec by. */
export function poolHash(profile: string, spec: string): string {
  return createHash('sha256')
    .update(JSON.stringify([profile, spec]))
    .digest('hex')
    .slice(0, 32);
}
