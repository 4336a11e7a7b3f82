import { BrokerError, messageOf } from '../domain/errors.ts';
import type { SandboxId } from '../domain/ids.ts';
import { RECORD_VERSION } from '../domain/sandbox.ts';
import type { Unreadable } from './record-fields.ts';

/** What a caller is told, by either store. */

export function unreadableError(id: SandboxId, { reason, newer }: Unreadable): BrokerError {
  const text = newer
    ? `the record of sandbox ${id} was written by a newer broker (${reason}; this one knows ${RECORD_VERSION}): upgrade this replica`
    : `the record of sandbox ${id} cannot be read (${reason}): delete the sandbox to clear it`;
  return new BrokerError('record_unreadable', text);
}

export function identityMismatch(id: SandboxId): BrokerError {
  return new BrokerError('identity_mismatch', `sandbox ${id} belongs to another user, thread or profile`);
}

export function storeClosed(): BrokerError {
  return new BrokerError('store_unavailable', 'the lease store is closed');
}

/** The server did not do it, or did not say that it did. */
export function storeUnavailable(cause: unknown): BrokerError {
  return new BrokerError('store_unavailable', `the lease store does not answer: ${messageOf(cause)}`, { cause });
}
