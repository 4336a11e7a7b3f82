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
  readonly spares: string;
  readonly claimedSpares: string;
  readonly #prefix: string;

  constructor(keyPrefix: string, deployment: string) {
    this.#prefix = `${keyPrefix}:{${deployment}}:`;
    const key = (name: string): string => `${this.#prefix}${name}`;
    this.life = key('life');
    this.index = key('index');
    this.engine = key('engine');
    this.spares = key('spares');
    this.claimedSpares = key('claimed-spares');
    this.common = [this.life, key('fence'), this.index, key('counted'), key('users'), key('tombstones')];
  }

  record(id: SandboxId): string {
    return `${this.#prefix}sandbox:${id}`;
  }

  /** The spares of one profile and spec. */
  pool(profile: string, spec: string): string {
    const hash = createHash('sha256')
      .update(JSON.stringify([profile, spec]))
      .digest('hex');
    return `${this.#prefix}pool:${hash.slice(0, 32)}`;
  }
}
