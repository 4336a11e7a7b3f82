import type { SandboxService } from '../service/api.ts';
import type { App } from './app.ts';
import { Health, Readiness, refer } from './schemas.ts';
import { readinessBody } from './views.ts';

export interface HealthRoutes {
  readonly service: SandboxService;
  readonly draining: () => boolean;
}

export function healthRoutes(app: App, { service, draining }: HealthRoutes): void {
  app.get(
    '/healthz',
    {
      config: { quiet: true },
      schema: {
        operationId: 'getHealth',
        tags: ['operation'],
        summary: 'Whether the process runs',
        description: 'Looks at nothing else.',
        response: { 200: refer(Health, 'It runs.') },
      },
    },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      config: { quiet: true, problems: ['internal_error'] },
      schema: {
        operationId: 'getReadiness',
        tags: ['operation'],
        summary: 'Whether this replica takes requests',
        description:
          'Ready from the first complete start until shutdown, whatever a dependency does meanwhile; the body tells of ' +
          'each as it is now.',
        response: { 200: refer(Readiness, 'Ready.'), 503: refer(Readiness, 'Not ready, or shutting down.') },
      },
    },
    async (_request, reply) => {
      if (draining()) return reply.code(503).send({ ready: false, because: 'shutting down' });
      const readiness = await service.readiness();
      return reply.code(readiness.ready ? 200 : 503).send(readinessBody(readiness));
    },
  );
}
