import * as fc from 'fast-check';
import { type Document, operationsOf, type Parameter, type Schema } from './conformance.ts';

export interface FuzzedRequest {
  /** Whether the document has this method for this path. */
  readonly documented: boolean;
  readonly method: string;
  readonly path: string;
  /** The id in the path: a number chooses one that is known by then. */
  readonly id: string | number;
  readonly suffix: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: string | null;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('', '../..', '%00', '*', "'", '\u0000', '\ud800', '__proto__', 'null', 'x'.repeat(10_000)),
);
/** Few users and threads, so that they meet each other. */
const person = fc.constantFrom('u1', 'u2', 'u3', '../u', 'ü 😀');
const holdId = fc.oneof(
  fc.constantFrom('1', '9007199254740991', '9999999999999999', '0', '-1', '1e3'),
  fc.bigInt(1n, 10n ** 16n).map(String),
);
const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 32, maxLength: 32 });

/** A value that the schema takes, mostly. */
function fitting(name: string, { type, enum: values, minimum = 0, maximum = 1000 }: Schema): fc.Arbitrary<unknown> {
  if (Array.isArray(values)) return fc.constantFrom(...values);
  if (type === 'integer') return fc.integer({ min: Number(minimum), max: Number(maximum) });
  if (name === 'profile') return fc.constant('default');
  if (name === 'cursor') return hex;
  return name === 'holdId' ? holdId : person;
}

const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: odd });

function bodyOf(document: Document, schema: Schema): fc.Arbitrary<string> {
  const name = String(schema.$ref).split('/').at(-1) ?? '';
  const { properties, required } = document.components.schemas[name] as {
    properties: Record<string, Schema>;
    required: string[];
  };
  const fields = Object.fromEntries(
    Object.entries(properties).map(([field, own]) => [field, mostly(fitting(field, own), fc.jsonValue())]),
  );
  const record = mostly(fc.record(fields, { requiredKeys: required }), fc.record(fields, { requiredKeys: [] }));
  const more = fc.tuple(record, fc.dictionary(oddText, fc.jsonValue(), { maxKeys: 2 }));
  return fc.oneof(
    { weight: 6, arbitrary: record.map((body) => JSON.stringify(body)) },
    { weight: 1, arbitrary: more.map(([body, extra]) => JSON.stringify({ ...body, ...extra })) },
    { weight: 1, arbitrary: fc.oneof(fc.json(), oddText, fc.constant('x'.repeat(70_000))) },
  );
}

function queryOf(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const known = parameters.filter((one) => one.in === 'query');
  if (known.length === 0)
    return fc.oneof(
      fc.constant(''),
      oddText.map((text) => `?${encode(text)}`),
    );
  const pair = fc
    .constantFrom(...known)
    .chain(({ name, schema }) =>
      mostly(fitting(name, schema).map(String), oddText).map((value) => `${name}=${encode(value)}`),
    );
  const odd = fc.tuple(oddText, oddText).map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return fc
    .array(fc.oneof({ weight: 9, arbitrary: pair }, { weight: 1, arbitrary: odd }), { maxLength: 3 })
    .map((all) => (all.length === 0 ? '' : `?${all.join('&')}`));
}

const encode = (text: string): string => encodeURIComponent(text.toWellFormed());

/** Requests for every call of the document, right ones and wrong ones, and for methods that it does not have. */
export function requestsFrom(document: Document): fc.Arbitrary<FuzzedRequest> {
  const calls = operationsOf(document).map(({ method, path, operation }) => {
    const { requestBody, parameters = [] } = operation;
    const schema = requestBody?.content['application/json']?.schema;
    const body =
      schema === undefined ? fc.option(oddText, { freq: 4 }) : fc.option(bodyOf(document, schema), { freq: 9 });
    const type = mostly(fc.constant('application/json'), fc.constantFrom('text/plain', '', 'a/b;;', 'application/xml'));
    const requestId = fc.option(fc.string({ maxLength: 200 }).map(encode), { freq: 3 });
    const documented = fc.oneof(
      { weight: 9, arbitrary: fc.constant(true) },
      { weight: 1, arbitrary: fc.constant(false) },
    );
    const arbitrary = fc
      .record({
        documented,
        other: fc.constantFrom(...METHODS.filter((one) => document.paths[path]?.[one.toLowerCase()] === undefined)),
        id: fc.oneof(
          { weight: 6, arbitrary: fc.nat(20) },
          { weight: 1, arbitrary: hex },
          { weight: 1, arbitrary: odd },
        ),
        suffix: queryOf(parameters),
        payload: body,
        type,
        requestId,
      })
      .map(({ other, payload, type: given, requestId: own, ...rest }): FuzzedRequest => {
        const about = payload === null || given === '' ? {} : { 'content-type': given };
        const headers = { ...about, ...(own === null ? {} : { 'x-request-id': own }) };
        return { ...rest, payload, path, method: rest.documented ? method : other, headers };
      });
    // Those that change something more often; without an acquire there is nothing to be asked about.
    return { arbitrary, weight: schema === undefined ? 1 : path.includes('{id}') ? 2 : 8 };
  });
  return fc.oneof(...calls);
}

/** An id that is none; not one that makes another path. */
const odd = oddText.map((text) => text.toWellFormed()).filter((text) => !/^\.{0,2}$/.test(text));
