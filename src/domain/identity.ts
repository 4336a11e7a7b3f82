import { hash } from 'node:crypto';
import { asSandboxId, type SandboxId } from './ids.ts';

/** Whose sandbox it is. All four are opaque text; they reach names, paths and keys only as a hash. */
export interface Identity {
  readonly deployment: string;
  readonly profile: string;
  readonly userId: string;
  readonly threadId: string;
}

/**
 * The id of an identity's sandbox: first 32 hex digits of SHA-256 over the JSON array of the four parts. JSON quotes
 * each part, so no two identities can be spelled the same way. Text is hashed as it is given: case and unicode
 * forms count.
 */
export function sandboxId({ deployment, profile, userId, threadId }: Identity): SandboxId {
  const text = JSON.stringify([deployment, profile, userId, threadId]);
  return asSandboxId(hash('sha256', text).slice(0, 32));
}

/** What a user is known by where only sameness counts: the SHA-1 of the id, in hexadecimal, as the lease store's scripts make it. */
export function userHash(userId: string): string {
  return hash('sha1', userId);
}

const ID = /^[0-9a-f]{32}$/;

/** True for text that has the form of a sandbox id. */
export function isSandboxId(text: string): text is SandboxId {
  return ID.test(text);
}
