import type { ContainerId } from '../domain/ids.ts';

const LONGEST_MS = 600_000;

/** When a removal that failed may be tried again: after a pause that doubles with each failure, ten minutes at most. */
export class RemovalBackoff {
  readonly #firstMs: number;
  readonly #failures = new Map<ContainerId, { count: number; notBefore: number }>();

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  failed(container: ContainerId, now: number): void {
    const count = (this.#failures.get(container)?.count ?? 0) + 1;
    const pause = Math.min(LONGEST_MS, this.#firstMs * 2 ** (count - 1));
    this.#failures.set(container, { count, notBefore: now + pause });
  }

  succeeded(container: ContainerId): void {
    this.#failures.delete(container);
  }

  mayTry(container: ContainerId, now: number): boolean {
    return (this.#failures.get(container)?.notBefore ?? now) <= now;
  }

  /** Forgets containers that are not there any more. */
  keepOnly(present: ReadonlySet<ContainerId>): void {
    for (const container of this.#failures.keys()) if (!present.has(container)) this.#failures.delete(container);
  }
}
