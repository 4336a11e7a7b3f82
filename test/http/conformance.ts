import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import type { App } from '../../src/http/app.ts';

export type Schema = { readonly [key: string]: unknown };
export type Media = Record<string, { readonly schema: Schema }>;
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly schema: Schema;
  readonly example?: unknown;
}
export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: Record<
    string,
    { readonly description: string; readonly content?: Media; readonly headers?: Record<string, object> }
  >;
}
export interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly description: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, Schema> };
}

export const fetchDocument = async (app: App): Promise<Document> => (await app.inject('/openapi.json')).json();

/** All calls of a document. */
export function operationsOf({ paths }: Document): { method: string; path: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Holds every answer against the document: listed status, content type, body and headers. */
export class Conformance {
  readonly #document: Document;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly seen = new Set<string>();

  constructor(document: Document) {
    this.#document = document;
    formats.default(this.#ajv);
    this.#ajv.addSchema({ ...document, $id: 'http://document/' });
  }

  check(method: string, path: string, answer: LightMyRequestResponse): void {
    const where = `${method} ${path} ${answer.statusCode}`;
    const operation = this.#document.paths[path]?.[method.toLowerCase()];
    const response = operation?.responses[answer.statusCode];
    expect(response, `${where} is listed`).toBeDefined();
    this.seen.add(where);
    for (const name of Object.keys(response?.headers ?? {})) {
      expect(answer.headers[name.toLowerCase()], `${where} has ${name}`).toBeDefined();
    }
    if (response?.content === undefined) {
      expect(answer.body, where).toBe('');
      return;
    }
    const [type] = String(answer.headers['content-type']).split(';');
    expect(Object.keys(response.content), where).toContain(type);
    const body = type === 'text/plain' ? answer.body : answer.json();
    const keys = ['paths', path, method.toLowerCase(), 'responses', String(answer.statusCode), 'content', type ?? ''];
    expect(this.faults([...keys, 'schema'], body), `${where}: ${answer.body}`).toEqual([]);
  }

  /** What is wrong with a value by the schema that stands at this place of the document. */
  faults(at: readonly string[], value: unknown): readonly unknown[] {
    const pointer = at.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')));
    const valid = this.#ajv.validate({ $ref: `http://document/#/${pointer.join('/')}` }, value);
    return valid ? [] : (this.#ajv.errors ?? []);
  }

  listed(): string[] {
    return operationsOf(this.#document).flatMap(({ method, path, operation }) =>
      Object.keys(operation.responses).map((status) => `${method} ${path} ${status}`),
    );
  }
}
