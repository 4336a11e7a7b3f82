import type { LeaseRecord } from '../../src/domain/sandbox.ts';

const lowOf = new WeakMap<object, number>();

/** A 53-bit hash of whatever is added, in its order. */
export class Fingerprint {
  #a = 0x9e3779b9;
  #b = 0x85ebca6b;

  get value(): number {
    return (this.#a >>> 0) * 0x200000 + (this.#b >>> 11);
  }

  number(value: number): this {
    const low = value | 0;
    const high = (value / 0x1_0000_0000) | 0;
    this.#a = Math.imul(this.#a ^ low, 0x9e3779b1);
    this.#b = Math.imul(this.#b ^ low, 0x85ebca77);
    this.#a = Math.imul((this.#a ^ (this.#b >>> 15)) + high, 0xc2b2ae3d);
    this.#b = Math.imul((this.#b ^ (this.#a >>> 13)) + high, 0x27d4eb2f);
    return this;
  }

  text(value: string): this {
    for (let at = 0; at < value.length; at += 1) {
      this.#a = Math.imul(this.#a ^ value.charCodeAt(at), 0x9e3779b1);
      this.#b = Math.imul(this.#b ^ value.charCodeAt(at), 0x85ebca77);
    }
    return this.number(value.length);
  }

  /** Anything that a call may answer with. */
  any(value: unknown): this {
    switch (typeof value) {
      case 'string':
        return this.text(value);
      case 'number':
        return this.number(value);
      case 'boolean':
        return this.number(value ? 2 : 1);
      case 'object':
        return value === null ? this.number(3) : this.#object(value);
      default:
        return this.number(4);
    }
  }

  /** What of a record decides how it goes on. */
  record(record: LeaseRecord | null): this {
    return record === null ? this.number(5) : this.number(hashOf(record));
  }

  #object(value: object): this {
    if (value instanceof Error) return this.text(value.message);
    if (value instanceof Map) {
      for (const [key, item] of value) this.any(key).any(item);
      return this.number(value.size);
    }
    if (Array.isArray(value)) {
      for (const item of value) this.any(item);
      return this.number(value.length);
    }
    if ('lastActiveAt' in value) return this.record(value as LeaseRecord);
    for (const name in value) this.any((value as Record<string, unknown>)[name]);
    return this.number(6);
  }
}

/** Records are never changed, so each is hashed once. */
function hashOf(record: LeaseRecord): number {
  const known = lowOf.get(record);
  if (known !== undefined) return known;
  const { state, owner, fence, since, container, expiresAt, holds, idleSince, life, verified } = record;
  const hash = new Fingerprint().text(state).text(owner).number(fence).number(since).any(container).number(expiresAt);
  hash.any(holds).number(idleSince).text(life).any(verified);
  lowOf.set(record, hash.value);
  return hash.value;
}
