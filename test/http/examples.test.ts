import { expect, test } from 'vitest';
import { SANDBOX_ID } from '../fakes/fake-service.ts';
import { Conformance, type Document, fetchDocument, operationsOf, type Schema } from './conformance.ts';
import { openApp } from './harness.ts';

interface Example {
  readonly at: readonly string[];
  readonly value: unknown;
}

/** Every example of the document, with the place of its schema. */
function examplesOf(value: unknown, at: readonly string[] = []): Example[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, below]) => {
    if (key === 'examples' && Array.isArray(below)) return below.map((one: unknown) => ({ at, value: one }));
    if (key === 'example') return [{ at: 'schema' in value ? [...at, 'schema'] : at, value: below }];
    return examplesOf(below, [...at, key]);
  });
}

const firstOf = (schema: Schema): unknown => (schema.examples as unknown[] | undefined)?.[0];
const schemaAt = (document: Document, ref: unknown): Schema =>
  document.components.schemas[String(ref).split('/').at(-1) ?? ''] ?? {};

test('[H-01] every example of the document is valid by its own schema', async () => {
  const { app } = openApp();
  const document = await fetchDocument(app);
  const conformance = new Conformance(document);
  const examples = examplesOf(document);
  for (const { at, value } of examples) expect(conformance.faults(at, value), at.join('/')).toEqual([]);
  expect(examples.length).toBeGreaterThan(10);
});

test('[H-01] a request made of the examples of its call is taken, for every call', async () => {
  const h = openApp();
  const document = await fetchDocument(h.app);
  let fields = 0;
  for (const { method, path, operation } of operationsOf(document)) {
    const query = new URLSearchParams();
    for (const { name, in: where, schema, example: shown } of operation.parameters ?? []) {
      const example = shown ?? (schema.enum as unknown[] | undefined)?.[0] ?? schema.default;
      expect(example, `${path} shows ${name}`).toBeDefined();
      if (where === 'query') query.set(name, String(example));
      else expect(example).toBe(SANDBOX_ID);
      fields += 1;
    }
    const ref = operation.requestBody?.content['application/json']?.schema.$ref;
    const properties = schemaAt(document, ref).properties as Record<string, Schema> | undefined;
    const payload = Object.fromEntries(
      Object.entries(properties ?? {}).map(([name, schema]) => [name, firstOf(schema)]),
    );
    for (const [name, value] of Object.entries(payload)) expect(value, `${path} shows ${name}`).toBeDefined();
    fields += Object.keys(payload).length;
    const url = `${path.replace('{id}', SANDBOX_ID)}${query.size === 0 ? '' : `?${query}`}`;
    const answer = await h.app.inject({ method: method as 'GET', url, ...(ref === undefined ? {} : { payload }) });
    expect(answer.statusCode, `${method} ${url}: ${answer.body}`).toBeLessThan(300);
  }
  expect(fields).toBeGreaterThan(12);
});
