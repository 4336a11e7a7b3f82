import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { BrokerError, type ErrorCode } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { asSandboxId, type HoldId, parseFence, type SandboxId } from '../domain/ids.ts';
import type { ListQuery, SandboxService } from '../service/api.ts';
import type { App } from './app.ts';
import { RETRY_AFTER } from './openapi.ts';
import { retryAfter } from './problems.ts';
import {
  Acquired,
  AcquireRequest,
  HoldRequest,
  ListFilter,
  refer,
  Sandbox,
  SandboxList,
  SandboxPath,
} from './schemas.ts';
import { ignoreBody, readableQuery } from './validation.ts';
import { acquiredBody, sandboxBody } from './views.ts';

/** How soon to look again at a sandbox that is being removed, in milliseconds. */
const REMOVAL_RETRY_MS = 2000;

const LOCATION = { Location: { type: 'string', description: 'Path of the sandbox.' } };
const WAIT = { 'Retry-After': RETRY_AFTER };

/** An answer without a body. */
const emptyBody = (about: object) => Type.Unsafe<undefined>({ type: 'null', ...about });

/** A record is read. */
const READS: readonly ErrorCode[] = ['store_unavailable', 'record_unreadable'];
const WITH_BODY: readonly ErrorCode[] = ['invalid_request', 'payload_too_large', 'unsupported_media_type'];

export interface SandboxRoutes {
  readonly service: SandboxService;
  readonly emit: Emit;
}

export function sandboxRoutes(app: App, { service, emit }: SandboxRoutes): void {
  const audit = (request: FastifyRequest, action: string, outcome: string): void =>
    emit({ type: 'audit', action, outcome, key: request.keyName, sandbox: request.sandbox, requestId: request.id });

  app.post(
    '/sandboxes',
    {
      config: {
        action: 'acquire',
        problems: [
          ...WITH_BODY,
          'unknown_profile',
          'identity_mismatch',
          'foreign_container',
          'capacity_exhausted',
          'user_capacity_exhausted',
          'sandbox_start_failed',
          'image_unavailable',
          'sandbox_not_ready',
          'runtime_timeout',
          'runtime_unavailable',
          'sandbox_unsettled',
          ...READS,
        ],
      },
      schema: {
        operationId: 'acquireSandbox',
        tags: ['sandboxes'],
        summary: 'Acquire the sandbox of a user and thread',
        description:
          'Gives the one sandbox of this identity, started if need be, and a hold on it. Any replica gives the same ' +
          'one. Each answer is a handout of its own, to be released when the turn is over. Safe to repeat.',
        body: refer(AcquireRequest),
        response: {
          200: refer(Acquired, 'Handed out; it was there already, or came from the spares.', LOCATION),
          201: refer(Acquired, 'Handed out; it was started for this call (`origin` is `created`).', LOCATION),
          202: refer(Sandbox, 'Not ready within the wait; the start goes on. Ask again.', {
            ...LOCATION,
            ...WAIT,
          }),
        },
      },
    },
    async (request, reply) => {
      const gone = new AbortController();
      request.gone = gone;
      const outcome = await service.acquire(request.body, { gone: gone.signal });
      request.sandbox = outcome.sandbox.id;
      reply.header('location', `/v1/sandboxes/${outcome.sandbox.id}`);
      if (outcome.kind === 'starting') {
        audit(request, 'acquire', 'starting');
        reply.code(202).header('retry-after', retryAfter(outcome.retryAfterMs));
        return { ...sandboxBody(outcome.sandbox), url: null };
      }
      audit(request, 'acquire', outcome.origin);
      reply.code(outcome.origin === 'created' ? 201 : 200);
      return acquiredBody(outcome);
    },
  );

  app.post(
    '/sandboxes/:id/keepalive',
    {
      config: { action: 'keepalive', problems: [...WITH_BODY, 'sandbox_not_found', 'hold_lost', ...READS] },
      schema: {
        operationId: 'keepSandboxAlive',
        tags: ['sandboxes'],
        summary: 'Say that the caller is still there',
        description:
          'The hold counts again from now. `hold_lost` and `sandbox_not_found`: the container is gone; acquire again.',
        params: SandboxPath,
        body: refer(HoldRequest),
        response: { 200: refer(Sandbox, 'The hold counts.') },
      },
    },
    async (request) => sandboxBody(await service.keepalive(pathId(request), holdId(request.body.holdId))),
  );

  app.post(
    '/sandboxes/:id/release',
    {
      config: { action: 'release', problems: [...WITH_BODY, 'sandbox_not_found', ...READS] },
      schema: {
        operationId: 'releaseSandbox',
        tags: ['sandboxes'],
        summary: 'Give a handout back',
        description: 'That hold is gone; others go on. The same answer when it was gone already.',
        params: SandboxPath,
        body: refer(HoldRequest),
        response: { 200: refer(Sandbox, 'The hold does not count any more.') },
      },
    },
    async (request) => {
      const view = await service.release(pathId(request), holdId(request.body.holdId));
      audit(request, 'release', 'released');
      return sandboxBody(view);
    },
  );

  app.delete(
    '/sandboxes/:id',
    {
      preParsing: ignoreBody,
      config: {
        action: 'destroy',
        problems: [
          'invalid_request',
          'foreign_container',
          'runtime_timeout',
          'runtime_unavailable',
          'sandbox_unsettled',
          ...READS,
        ],
      },
      schema: {
        operationId: 'destroySandbox',
        tags: ['sandboxes'],
        summary: 'Destroy a sandbox, whoever holds it',
        description: 'From any replica. A body is not read.',
        params: SandboxPath,
        response: {
          202: emptyBody({
            description: 'Its removal goes on in the background; no body.',
            headers: { ...LOCATION, ...WAIT },
          }),
          204: emptyBody({ description: 'Gone, or never there; no body.' }),
        },
      },
    },
    async (request, reply) => {
      const id = pathId(request);
      const outcome = await service.destroy(id);
      audit(request, 'destroy', outcome);
      if (outcome === 'gone') return reply.code(204).send(undefined);
      return reply
        .code(202)
        .headers({ location: `/v1/sandboxes/${id}`, 'retry-after': retryAfter(REMOVAL_RETRY_MS) })
        .send(undefined);
    },
  );

  app.get(
    '/sandboxes/:id',
    {
      config: { action: 'read', problems: ['invalid_request', 'sandbox_not_found', ...READS] },
      schema: {
        operationId: 'getSandbox',
        tags: ['sandboxes'],
        summary: 'Read a sandbox',
        description:
          'Never counts as activity and never moves a lease. The 404 carries `previous` for an hour after the sandbox ' +
          'ended by itself.',
        params: SandboxPath,
        response: { 200: refer(Sandbox, 'The sandbox as it is now.') },
      },
    },
    async (request) => sandboxBody(await service.get(pathId(request))),
  );

  app.get(
    '/sandboxes',
    {
      preValidation: readableQuery,
      config: { action: 'list', problems: ['invalid_request', 'store_unavailable'] },
      schema: {
        operationId: 'listSandboxes',
        tags: ['sandboxes'],
        summary: 'List sandboxes',
        description: 'All of the fleet, the same from any replica. Never counts as activity.',
        querystring: ListFilter,
        response: { 200: refer(SandboxList, 'One page.') },
      },
    },
    async (request) => {
      const { items, nextCursor } = await service.list(request.query as ListQuery);
      return { items: items.map(sandboxBody), nextCursor };
    },
  );
}

/** The id in the path, whose form the schema has checked. */
export function pathId(request: FastifyRequest): SandboxId {
  const id = asSandboxId((request.params as { id: string }).id);
  request.sandbox = id;
  return id;
}

function holdId(digits: string): HoldId {
  const hold = parseFence(digits);
  if (hold === null) throw new BrokerError('invalid_request', 'body/holdId is not one that was ever given out.');
  return hold;
}
