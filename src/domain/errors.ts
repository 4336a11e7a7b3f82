/** Every way in which the broker can fail a caller. The table from code to HTTP status is in http/problems.ts. */
export const ERROR_CODES = [
  'invalid_request',
  'unknown_profile',
  'unauthorized',
  'forbidden',
  'sandbox_not_found',
  'route_not_found',
  'hold_lost',
  'identity_mismatch',
  'foreign_container',
  'payload_too_large',
  'unsupported_media_type',
  'internal_error',
  'capacity_exhausted',
  'user_capacity_exhausted',
  'rate_limited',
  'sandbox_start_failed',
  'image_unavailable',
  'sandbox_not_ready',
  'runtime_timeout',
  'store_unavailable',
  'record_unreadable',
  'runtime_unavailable',
  'sandbox_unsettled',
  'shutting_down',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** Why an earlier container of an identity ended by itself. Times in epoch milliseconds. */
export interface Previous {
  readonly endedAt: number;
  readonly reason: string;
  readonly exitCode: number | null;
  readonly logTail: string;
}

export interface ErrorDetails {
  readonly cause?: unknown;
  /** Where waiting helps: how long, in milliseconds. */
  readonly retryAfterMs?: number;
  /** With `sandbox_not_found`: how the sandbox ended. */
  readonly previous?: Previous | null;
}

/** The one error class. `message` is for people: what happened, to which sandbox, and what to do. */
export class BrokerError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterMs: number | null;
  readonly previous: Previous | null;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'BrokerError';
    this.code = code;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.previous = details.previous ?? null;
  }
}

/** True for a `BrokerError` of one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is BrokerError {
  return error instanceof BrokerError && codes.includes(error.code);
}

/** Null for what is none of the broker's errors. */
export function codeOf(error: unknown): ErrorCode | null {
  return error instanceof BrokerError ? error.code : null;
}

/** What to print of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
