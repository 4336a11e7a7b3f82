import { isUtf8 } from 'node:buffer';
import { Ajv, type ErrorObject } from 'ajv';
import type { FastifyInstance, preParsingHookHandler, preValidationHookHandler } from 'fastify';
import { BrokerError } from '../domain/errors.ts';
import { HOLD_ID_PATTERN, SANDBOX_ID_PATTERN, SHARED_SCHEMAS, TEXT_PATTERN } from './schemas.ts';

/** How much of an unknown field's name is said back. */
const NAME_SHOWN = 64;

const PATTERN_RULES: Readonly<Record<string, string>> = {
  [TEXT_PATTERN]: 'must not contain control characters or lone surrogates',
  [SANDBOX_ID_PATTERN]: 'must be a sandbox id, 32 hex digits in lower case',
  [HOLD_ID_PATTERN]: 'must be a hold id, decimal digits',
};

/**
 * Bodies are taken as they are: nothing is coerced, removed or filled in. Query strings and paths are text, so there
 * numbers are read and defaults filled in. Lengths count code points.
 */
export function installValidation(app: FastifyInstance): void {
  const schemas = [...SHARED_SCHEMAS];
  const body = new Ajv({ schemas });
  const text = new Ajv({ schemas, coerceTypes: true, useDefaults: true });
  app.setValidatorCompiler(({ schema, httpPart }) => (httpPart === 'body' ? body : text).compile(schema as object));
  app.setSchemaErrorFormatter(
    ([first], part) => new BrokerError('invalid_request', explain(first as ErrorObject, part)),
  );
}

/**
 * JSON in UTF-8 is the only thing that is read. An empty body is no body: harmless where none is needed, and refused
 * by the schema where one is.
 */
export function installBodyParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, raw, done) => {
    const bytes = raw as Buffer;
    if (bytes.length === 0) return done(null, undefined);
    if (!isUtf8(bytes)) return done(new BrokerError('invalid_request', 'The body is not UTF-8.'));
    try {
      done(null, JSON.parse(bytes.toString('utf8')));
    } catch {
      done(new BrokerError('invalid_request', 'The body is not valid JSON.'));
    }
  });
}

/** For a route whose method may carry a body that means nothing: it is not read, whatever its headers say of it. */
export const ignoreBody: preParsingHookHandler = (request, _reply, payload, done) => {
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete request.headers[name];
  done(null, payload);
};

/** A query that is not percent-encoded UTF-8 is refused. By itself it would be taken for the text as it is written. */
export const readableQuery: preValidationHookHandler = (request, _reply, done) => {
  const url = request.raw.url ?? '';
  try {
    decodeURIComponent(url.slice(url.indexOf('?') + 1));
    done();
  } catch {
    done(new BrokerError('invalid_request', 'The query string cannot be decoded: it has to be UTF-8.'));
  }
};

function explain({ instancePath, keyword, params, message }: ErrorObject, part: string): string {
  const where = `${part}${instancePath}`;
  switch (keyword) {
    case 'additionalProperties':
      return `${where} must not have the field ${JSON.stringify(params.additionalProperty.slice(0, NAME_SHOWN))}.`;
    case 'pattern':
      return `${where} ${PATTERN_RULES[params.pattern] ?? message}.`;
    case 'enum':
      return `${where} must be one of ${params.allowedValues.join(', ')}.`;
    default:
      return `${where} ${message}.`;
  }
}
