import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifySchema } from 'fastify';
import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import { PROBLEM_TYPE, PROBLEMS, RESERVED_CODES } from './problems.ts';

const INTRODUCTION = `Hands out container sandboxes to AI-agent gateways: one per user and thread, the same from every replica.

A caller acquires the sandbox at the beginning of a turn, uses its \`url\`, keeps its hold alive, and releases it. After
\`sandbox_not_found\` or \`hold_lost\` it acquires again, which is always safe. While the broker answers 503 it goes on
using the url it has: nothing is reaped meanwhile.

Every answer carries \`X-Request-Id\`: the caller's own, if it sent 1 to 128 of \`A-Z a-z 0-9 . _ -\`, else a new one.

Bodies are JSON in UTF-8 of at most 64 KiB. Fields that are not listed are refused, and nothing is coerced.

Errors are \`application/problem+json\` (RFC 9457); \`code\` is what to decide by. Whatever is retryable carries
\`Retry-After\`. A route or method that is not listed answers 404 \`route_not_found\`; \`HEAD\` is answered like \`GET\`, without
a body. What is not readable HTTP, or does not arrive within 30 seconds, answers 400, and its connection ends.
`;

/** What every call under `/v1` may answer with. */
const GUARDED: readonly ErrorCode[] = ['unauthorized', 'internal_error', 'shutting_down'];

/** As a header of an answer. */
export const RETRY_AFTER = { type: 'integer', minimum: 1, description: 'Whole seconds.' };

/** The document as a whole; calls, parameters and answers come from the routes. */
export function documentOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sandbox broker',
        version,
        description: `${INTRODUCTION}\n${codeTable()}`,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/', description: 'The replica that serves this document.' }],
      tags: [
        { name: 'sandboxes', description: 'Acquire, keep, release, destroy, read.' },
        { name: 'operation', description: 'For those who run it.' },
      ],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A key of `auth.keys`.' },
          apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The same, in a header of its own.' },
        },
      },
    },
    convertConstToEnum: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => (json.$id ? String(json.$id) : `schema-${i}`) },
    transform: ({ schema, url, route }) => ({
      schema: documented(schema ?? {}, url, (route.config?.problems ?? []) as readonly ErrorCode[]),
      url,
    }),
  };
}

/** Adds what a route has in common with others: who may call it, and the problems it may answer with. */
function documented(schema: FastifySchema, url: string, problems: readonly ErrorCode[]): FastifySchema {
  const guarded = url.startsWith('/v1/');
  const byStatus = Map.groupBy([...problems, ...(guarded ? GUARDED : [])], (code) => PROBLEMS[code].status);
  const response: Record<string, unknown> = { ...(schema.response as object | undefined) };
  for (const [status, codes] of byStatus) response[status] ??= problemResponse(codes);
  return { ...schema, response, security: guarded ? [{ bearer: [] }, { apiKey: [] }] : [] };
}

function problemResponse(codes: readonly ErrorCode[]): object {
  const headers: Record<string, object> = {};
  if (codes.some((code) => PROBLEMS[code].retryable)) headers['Retry-After'] = RETRY_AFTER;
  if (codes.includes('unauthorized')) headers['WWW-Authenticate'] = { type: 'string' };
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join('\n\n'),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { [PROBLEM_TYPE]: { schema: { $ref: 'Problem#' } } },
  };
}

function codeTable(): string {
  const rows = ERROR_CODES.map((code) => {
    const { status, title, retryable } = PROBLEMS[code];
    const meaning = RESERVED_CODES.includes(code) ? `${title}. Reserved: no call answers with it yet` : title;
    return `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${meaning} |`;
  });
  return ['| code | status | retryable | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
