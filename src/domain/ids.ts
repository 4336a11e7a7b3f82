/**
 * Names of things as types of their own, so that a container id is never passed where a sandbox id is meant.
 * All of them are plain strings or numbers at run time.
 */
declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** First 32 hex digits of the identity's hash. See identity.ts. */
export type SandboxId = Branded<string, 'SandboxId'>;
/** The engine's own id of a container, 64 hex digits. */
export type ContainerId = Branded<string, 'ContainerId'>;
/** `hostname:uuid` of one broker process, new at each start. */
export type OwnerId = Branded<string, 'OwnerId'>;
/** The random value kept inside an engine, by which it is known. */
export type EngineMark = Branded<string, 'EngineMark'>;
/** One uninterrupted run of the lease store and of somebody renewing in it. */
export type Life = Branded<string, 'Life'>;
/**
 * Fencing token: microseconds of the store's clock or larger, never repeated, never going back. Below 2^53, so
 * that a number holds it exactly. On the wire it is a string of decimal digits.
 */
export type Fence = Branded<number, 'Fence'>;
/** The fence of one handout; 0 is the unknown hold (somebody may be using a container that was found). */
export type HoldId = Fence;

export const UNKNOWN_HOLD = 0 as HoldId;
/** `since` of a container that no handout of its own began: a former spare, or one found without a readable label. */
export const NO_FENCE = 0 as Fence;

export const asSandboxId = (text: string): SandboxId => text as SandboxId;
export const asContainerId = (text: string): ContainerId => text as ContainerId;
export const asOwnerId = (text: string): OwnerId => text as OwnerId;
export const asEngineMark = (text: string): EngineMark => text as EngineMark;
export const asLife = (text: string): Life => text as Life;

const DIGITS = /^[1-9][0-9]{0,15}$/;

/** Reads a fence from its digits; null for anything that no store ever gave out. */
export function parseFence(text: string): Fence | null {
  if (!DIGITS.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? (value as Fence) : null;
}

/** The fence's digits, exact. */
export function formatFence(fence: Fence): string {
  return fence.toFixed(0);
}
