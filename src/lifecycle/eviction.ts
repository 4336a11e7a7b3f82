import type { SandboxId } from '../domain/ids.ts';
import { unheldSince } from '../domain/sandbox.ts';
import type { LeaseStore, Snapshot } from '../leases/lease-store.ts';
import type { Teardown } from './teardown.ts';

export interface EvictionOptions {
  readonly store: Pick<LeaseStore, 'page' | 'claim'>;
  readonly teardown: Teardown;
}

const PAGE = 200;

/** Makes room at a limit by removing a sandbox that nobody holds. */
export class Eviction {
  readonly #options: EvictionOptions;

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  /**
   * Removes the sandbox that has been unheld longest, whoever owns it; of one user's only, if `userId` is given. True
   * once it is gone and its slot is free. A held one never goes: the claim is judged by the store. Rejects with
   * `store_unavailable`.
   */
  async makeRoom(userId: string | null): Promise<boolean> {
    const { store, teardown } = this.#options;
    for (const { id, fence } of await this.#unheld(userId)) {
      const claim = await store.claim(id, fence, { kind: 'capacity' });
      if (claim === 'refused') continue;
      if ((await teardown.run(claim, 'capacity')) === 'removed') return true;
    }
    return false;
  }

  /** Unheld longest first. */
  async #unheld(userId: string | null) {
    const found: { id: SandboxId; fence: Parameters<LeaseStore['claim']>[1]; since: number }[] = [];
    for (let after: SandboxId | null | undefined; after !== null; ) {
      const { items, next }: { items: readonly Snapshot[]; next: SandboxId | null } = await this.#options.store.page(
        after ?? null,
        PAGE,
      );
      for (const seen of items) {
        if (seen.kind !== 'record' || seen.record.state !== 'ready') continue;
        const { id, fence } = seen.record;
        const since = unheldSince(seen.record, seen.now);
        if (since !== null && (userId === null || seen.record.userId === userId)) found.push({ id, fence, since });
      }
      after = next;
    }
    return found.sort((a, b) => a.since - b.since);
  }
}
