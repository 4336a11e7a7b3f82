import { BrokerError } from '../domain/errors.ts';
import { isSandboxId } from '../domain/identity.ts';
import type { SandboxId } from '../domain/ids.ts';
import type { ShownState } from '../domain/sandbox.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ListQuery, SandboxView } from './api.ts';
import { sandboxView } from './views.ts';

const PAGE = 200;

/**
 * Every sandbox of the deployment once, in the order of their ids, as the store shows it while it is read. What comes
 * and goes meanwhile may be missed or not; nothing that stays is missed or told twice.
 */
async function* everySandbox(
  store: Pick<LeaseStore, 'page'>,
  idleMs: number,
  after: SandboxId | null,
): AsyncGenerator<SandboxView> {
  let last = after;
  do {
    const { items, next } = await store.page(last, PAGE);
    for (const seen of items) {
      const view = seen.kind === 'record' ? sandboxView(seen.record, seen.now, idleMs) : null;
      if (view !== null) yield view;
    }
    last = next;
  } while (last !== null);
}

/** One page of the sandboxes that match, any replica's answer alike. Rejects with `invalid_request` for a bad cursor. */
export async function listSandboxes(
  store: Pick<LeaseStore, 'page'>,
  query: ListQuery,
  idleMs: number,
): Promise<{ items: SandboxView[]; nextCursor: string | null }> {
  const items: SandboxView[] = [];
  for await (const view of everySandbox(store, idleMs, readCursor(query.cursor))) {
    if (!matches(view, query)) continue;
    if (items.length === query.limit) return { items, nextCursor: items.at(-1)?.id ?? null };
    items.push(view);
  }
  return { items, nextCursor: null };
}

/** How many sandboxes the fleet has in each state. */
export async function countSandboxes(store: Pick<LeaseStore, 'page'>): Promise<Record<ShownState, number>> {
  const counts = { starting: 0, active: 0, warm: 0, destroying: 0 };
  for await (const { state } of everySandbox(store, 0, null)) counts[state] += 1;
  return counts;
}

function matches(view: SandboxView, { userId, threadId, state, profile }: ListQuery): boolean {
  return (
    (userId === undefined || view.userId === userId) &&
    (threadId === undefined || view.threadId === threadId) &&
    (state === undefined || view.state === state) &&
    (profile === undefined || view.profile === profile)
  );
}

/** A cursor is the last id that was told. */
function readCursor(cursor: string | undefined): SandboxId | null {
  if (cursor === undefined) return null;
  if (isSandboxId(cursor)) return cursor;
  throw new BrokerError('invalid_request', 'cursor: take nextCursor of the page before, as it is.');
}
