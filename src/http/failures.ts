import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { NewId } from '../domain/timing.ts';
import { asBrokerError, PROBLEM_TYPE, PROBLEMS, problemBody, problemHeaders } from './problems.ts';
import { type Action, observe } from './request-log.ts';

/** Calls whose refusal is audited, whatever the reason. A keepalive that succeeds is not: there are too many. */
const AUDITED: readonly Action[] = ['acquire', 'keepalive', 'release', 'destroy'];

/** Turns everything that goes wrong with a request into a problem body; each failure passes here once. */
export class Failures {
  readonly #emit: Emit;
  readonly #newId: NewId;

  constructor({ emit, newId }: { emit: Emit; newId: NewId }) {
    this.#emit = emit;
    this.#newId = newId;
  }

  /** Whatever a hook, the validation or a handler threw. Logs what nobody expected, tells the audit of refusals. */
  readonly answer = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const failure = this.#understand(error, request, reply);
    const { status } = PROBLEMS[failure.code];
    request.refusal = failure.code;
    if (status === 500) {
      request.log.error({ requestId: request.id, ...told(failure.cause ?? failure) }, 'request failed unexpectedly');
    }
    this.#audit(failure, status, request);
    reply
      .code(status)
      .headers(problemHeaders(failure))
      .type(PROBLEM_TYPE)
      .send(Buffer.from(JSON.stringify(problemBody(failure, request.id))));
  };

  readonly notFound = (request: FastifyRequest): never => {
    throw new BrokerError('route_not_found', `${request.method} is not answered here; /openapi.json lists the routes.`);
  };

  /** What the router refuses before any hook has run: a path that cannot be decoded, or a part too long for any id. */
  readonly refusedByRouter = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    observe(request, reply, this.#emit);
    const { code } = error as { code?: string };
    const why = code === 'FST_ERR_MAX_PARAM_LENGTH' ? 'A part of the path is too long.' : 'The path cannot be decoded.';
    this.answer(new BrokerError('invalid_request', why, { cause: error }), request, reply);
  };

  /**
   * What is not HTTP, not complete in time, or has headers beyond every measure. There is no request to log. A connection
   * on which nothing was ever sent just ends: a client that begins to use it in that moment would take what is written
   * for the answer to its request.
   */
  readonly malformed = (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
      socket.destroy();
      return;
    }
    const failure = new BrokerError('invalid_request', 'The request is not readable HTTP, or did not arrive in time.');
    const { status } = PROBLEMS[failure.code];
    const requestId = this.#newId();
    const body = JSON.stringify(problemBody(failure, requestId));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      `content-type: ${PROBLEM_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      'connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  };

  /** A client that left, in the middle of its body or of its wait, is nobody's failure: there is no 500 to look into. */
  #understand(error: unknown, request: FastifyRequest, reply: FastifyReply): BrokerError {
    const gaveUp = request.gone?.signal;
    const left =
      (gaveUp?.aborted === true && error === gaveUp.reason) || (!request.raw.complete && reply.raw.destroyed);
    if (left && !(error instanceof BrokerError)) return new BrokerError('invalid_request', 'The client hung up.');
    return asBrokerError(error);
  }

  #audit({ code }: BrokerError, status: number, request: FastifyRequest): void {
    const { action } = request.routeOptions.config;
    const refused = status === 401 || status === 403;
    if (!refused && (action === undefined || !AUDITED.includes(action))) return;
    const { keyName: key, sandbox, id: requestId } = request;
    this.#emit({ type: 'audit', action: action ?? 'unknown', outcome: code, key, sandbox, requestId });
  }
}

/** What the log gets of an unexpected error. Not its other properties: a driver keeps the arguments of its call there. */
function told(error: unknown): { detail: string; stack?: string | undefined } {
  return { detail: messageOf(error), ...(error instanceof Error ? { stack: error.stack } : {}) };
}
