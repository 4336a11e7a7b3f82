import { STATUS_CODES } from 'node:http';
import { BrokerError, type ErrorCode } from '../domain/errors.ts';
import type { ProblemBody } from './schemas.ts';
import { previousBody } from './views.ts';

export interface ProblemKind {
  readonly status: number;
  /** The same for every occurrence; what happened this time stands in `detail`. */
  readonly title: string;
  /** The same request, sent again after `Retry-After`, may well succeed. */
  readonly retryable: boolean;
}

/** From code to HTTP: the only such table. */
export const PROBLEMS: Readonly<Record<ErrorCode, ProblemKind>> = {
  invalid_request: { status: 400, title: 'The request is not valid', retryable: false },
  unknown_profile: { status: 400, title: 'There is no such profile', retryable: false },
  unauthorized: { status: 401, title: 'A valid key is needed', retryable: false },
  forbidden: { status: 403, title: 'This key may not do that', retryable: false },
  sandbox_not_found: { status: 404, title: 'There is no such sandbox', retryable: false },
  route_not_found: { status: 404, title: 'There is no such route', retryable: false },
  hold_lost: { status: 409, title: 'The container of this hold is gone', retryable: false },
  identity_mismatch: { status: 409, title: 'The sandbox belongs to another identity', retryable: false },
  foreign_container: { status: 409, title: 'The name is taken by a container that is not ours', retryable: false },
  payload_too_large: { status: 413, title: 'The body is too large', retryable: false },
  unsupported_media_type: { status: 415, title: 'The body has to be JSON', retryable: false },
  internal_error: { status: 500, title: 'Something failed inside the broker', retryable: false },
  capacity_exhausted: { status: 429, title: 'All sandboxes are in use', retryable: true },
  user_capacity_exhausted: { status: 429, title: 'All sandboxes of this user are in use', retryable: true },
  rate_limited: { status: 429, title: 'Too many requests', retryable: true },
  sandbox_start_failed: { status: 502, title: 'The sandbox could not be started', retryable: false },
  image_unavailable: { status: 502, title: 'The image could not be pulled', retryable: false },
  sandbox_not_ready: { status: 504, title: 'The sandbox did not become ready in time', retryable: false },
  runtime_timeout: { status: 504, title: 'The container runtime did not answer in time', retryable: false },
  store_unavailable: { status: 503, title: 'The lease store does not answer', retryable: true },
  record_unreadable: { status: 503, title: 'The record of this sandbox cannot be read', retryable: true },
  runtime_unavailable: { status: 503, title: 'The container runtime does not answer', retryable: true },
  sandbox_unsettled: { status: 503, title: 'It cannot be told yet whether the sandbox is usable', retryable: true },
  shutting_down: { status: 503, title: 'This replica is shutting down', retryable: true },
};

/**
 * Codes that clients should know although no call answers with them yet: every key may do everything, and how often it
 * calls is not limited.
 */
export const RESERVED_CODES: readonly ErrorCode[] = ['forbidden', 'rate_limited'];

export const PROBLEM_TYPE = 'application/problem+json';

/** How long to wait where waiting helps and the error does not say: one second. */
const DEFAULT_RETRY_AFTER_MS = 1000;

const HIDDEN = 'An unexpected error. The log of this replica tells more under this request id.';

/** Problem details (RFC 9457). What an unexpected error says stays inside. */
export function problemBody(error: BrokerError, requestId: string): ProblemBody {
  const { status, title, retryable } = PROBLEMS[error.code];
  return {
    type: `urn:problem-type:sandbox-broker:${error.code}`,
    title,
    status,
    detail: status === 500 ? HIDDEN : error.message,
    code: error.code,
    retryable,
    requestId,
    ...(error.previous === null ? {} : { previous: previousBody(error.previous) }),
  };
}

/** The headers that go with a problem, except its content type. */
export function problemHeaders(error: BrokerError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (PROBLEMS[error.code].retryable || error.retryAfterMs !== null) {
    headers['retry-after'] = retryAfter(error.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS);
  }
  if (error.code === 'unauthorized') headers['www-authenticate'] = 'Bearer realm="sandbox-broker"';
  if (error.code === 'shutting_down') headers.connection = 'close';
  return headers;
}

/** The value of `Retry-After`: whole seconds, at least one. */
export function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}

/**
 * Makes a `BrokerError` of anything thrown while a request was served. Of errors with a status of their own only
 * those of the framework are believed: an engine's 404 that slipped through is not the caller's 404.
 */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const { code, statusCode, message } = (error ?? {}) as Record<string, unknown>;
  const ofFramework = typeof code === 'string' && code.startsWith('FST_');
  if (!ofFramework || typeof statusCode !== 'number' || statusCode >= 500) {
    return new BrokerError('internal_error', HIDDEN, { cause: error });
  }
  const text = typeof message === 'string' ? message : (STATUS_CODES[statusCode] ?? 'Refused');
  return new BrokerError(CODE_OF_STATUS[statusCode] ?? 'invalid_request', text, { cause: error });
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  404: 'route_not_found',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
};
