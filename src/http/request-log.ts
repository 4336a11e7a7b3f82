import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../domain/errors.ts';
import type { BrokerEvent, Emit } from '../domain/events.ts';
import type { SandboxId } from '../domain/ids.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The name of the key that was sent; null where none is needed or none was right. */
    keyName: string | null;
    /** The sandbox that the request was about, once known. */
    sandbox: SandboxId | null;
    /** Why it was refused. */
    refusal: ErrorCode | null;
    /** Aborts when the client hangs up before its answer was written. Made for the routes that wait. */
    gone: AbortController | null;
  }
  interface FastifyContextConfig {
    /** What a call is called in the audit. */
    action?: Action;
    /** Every code that the route may answer with; the document is made of it. */
    problems?: readonly ErrorCode[];
    /** Asked by machines every few seconds: logged at `debug`. */
    quiet?: boolean;
  }
}

export type Action = 'acquire' | 'keepalive' | 'release' | 'destroy' | 'read' | 'list' | 'status';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The caller's own request id when it is a plain one; null otherwise. */
export function givenRequestId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : null;
}

/**
 * Gives the answer its request id, and watches the connection for the end of the request: writes the one log line,
 * and tells whoever waits that the client is gone. The response's own `close` is what counts, since the request's
 * fires as soon as its body was read.
 */
export function observe(request: FastifyRequest, reply: FastifyReply, emit: Emit): void {
  reply.header('x-request-id', request.id);
  reply.raw.once('close', () => {
    const hungUp = !reply.raw.writableEnded;
    if (hungUp) request.gone?.abort();
    logLine(request, reply, hungUp);
    emit(requestEvent(request, reply, hungUp));
  });
}

function requestEvent({ method, routeOptions }: FastifyRequest, reply: FastifyReply, hungUp: boolean): BrokerEvent {
  const known = routeOptions.url !== undefined;
  const about = { method: known ? method : 'any', route: routeOptions.url ?? 'unknown' };
  return { type: 'request', ...about, status: hungUp ? 0 : reply.statusCode, durationMs: reply.elapsedTime };
}

/**
 * The route's pattern is logged, never the url: what users send has no business in a log. What went well is told by the
 * audit and counted by the metrics; as a line of its own it is for `debug`.
 */
function logLine(request: FastifyRequest, reply: FastifyReply, hungUp: boolean): void {
  const { url: route = null, config } = request.routeOptions;
  const line = {
    requestId: request.id,
    method: request.method,
    route,
    status: hungUp ? null : reply.statusCode,
    durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
    key: request.keyName,
    sandbox: request.sandbox,
    ...(request.refusal === null ? {} : { code: request.refusal }),
    ...(hungUp ? { hungUp } : {}),
  };
  const wentWell = !hungUp && reply.statusCode < 400;
  if (config.quiet === true || wentWell) request.log.debug(line, 'request');
  else request.log.info(line, 'request');
}
