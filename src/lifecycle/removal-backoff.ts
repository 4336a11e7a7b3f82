import type { ContainerId } from '../domain/ids.ts';

const LONGEST_MS = 600_000;

/** When what failed may be tried again: after a pause that doubles with each failure, ten minutes at most. */
export class RemovalBackoff<Key extends string = ContainerId> {
  readonly #firstMs: number;
  readonly #failures = new Map<Key, { count: number; notBefore: number }>();

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  failed(what: Key, now: number): void {
    const count = (this.#failures.get(what)?.count ?? 0) + 1;
    const pause = Math.min(LONGEST_MS, this.#firstMs * 2 ** (count - 1));
    this.#failures.set(what, { count, notBefore: now + pause });
  }

  succeeded(what: Key): void {
    this.#failures.delete(what);
  }

  mayTry(what: Key, now: number): boolean {
    return (this.#failures.get(what)?.notBefore ?? now) <= now;
  }

  /** Forgets what is not there any more. */
  keepOnly(present: Pick<ReadonlySet<Key>, 'has'>): void {
    for (const what of this.#failures.keys()) if (!present.has(what)) this.#failures.delete(what);
  }
}
