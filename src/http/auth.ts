import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { BrokerError } from '../domain/errors.ts';

export interface AuthOptions {
  /** Without any, everybody may do everything. */
  readonly keys: readonly { readonly name: string; readonly key: string }[];
}

/** The keys that open the API. Holds their hashes only, so that nothing printed of it tells a key. */
export class KeyRing {
  readonly #keys: readonly { readonly name: string; readonly hash: Buffer }[];

  constructor({ keys }: AuthOptions) {
    this.#keys = keys.map(({ name, key }) => ({ name, hash: hashOf(key) }));
  }

  /**
   * The name of the key that these headers carry, in `Authorization: Bearer` or in `X-API-Key`; one of both is
   * enough. Null when no key is needed. Throws `unauthorized`.
   */
  identify(headers: IncomingHttpHeaders): string | null {
    if (this.#keys.length === 0) return null;
    const bearer = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
    const given = [bearer, headers['x-api-key']].filter((key) => typeof key === 'string');
    for (const key of given) {
      const name = this.#nameOf(key);
      if (name !== null) return name;
    }
    const how = 'Send one as "Authorization: Bearer <key>" or "X-API-Key: <key>".';
    throw new BrokerError('unauthorized', `${given.length === 0 ? 'No key was sent' : 'The key is not known'}. ${how}`);
  }

  /** Compares with every key, whole, so that the time taken tells nothing. */
  #nameOf(key: string): string | null {
    const hash = hashOf(key);
    let found: string | null = null;
    for (const candidate of this.#keys) if (timingSafeEqual(candidate.hash, hash)) found = candidate.name;
    return found;
  }
}

/** Of equal length for all keys, as the comparison needs it. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}
