import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { Type } from 'typebox';
import type { App } from './app.ts';
import { documentOptions } from './openapi.ts';
import { SHARED_SCHEMAS } from './schemas.ts';

/** Everything comes from here, and by whatever scheme the page itself came: many a broker is asked by plain HTTP. */
const PAGE_POLICY = [
  "default-src 'self'",
  "base-uri 'self'",
  "font-src 'self' data:",
  "frame-ancestors 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "script-src-attr 'none'",
].join('; ');

/** Collects the document from all routes that are registered after this call. */
export function collectDocument(app: App, version: string): void {
  for (const schema of SHARED_SCHEMAS) app.addSchema(schema);
  app.register(swagger, documentOptions(version));
}

/** Serves the document: `/openapi.json`, and `/docs` to read. The page loads nothing from anywhere else. */
export async function docsRoutes(app: App): Promise<void> {
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: PAGE_POLICY,
    uiConfig: { validatorUrl: null, deepLinking: true },
  });
  app.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'getDocument',
        tags: ['operation'],
        summary: 'This document',
        response: { 200: Type.Unsafe<string>({ type: 'object', description: 'OpenAPI 3.1.' }) },
      },
    },
    async (_request, reply) => reply.type('application/json').send(documentText(app)),
  );
}

/** The document as it is kept in `openapi/`: the same text for the same code. */
export function documentText(app: App): string {
  return `${JSON.stringify(app.swagger(), null, 2)}\n`;
}
