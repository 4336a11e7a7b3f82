import type { ReadinessView, SandboxService } from '../service/api.ts';
import type { App } from './app.ts';
import { Health, Readiness, refer } from './schemas.ts';
import { readinessBody } from './views.ts';

export interface HealthRoutes {
  readonly service: SandboxService;
  readonly draining: () => boolean;
}

/** Probes give up after a second or so: an answer that comes later looks like a replica that hangs. */
const LOOK_MS = 500;

/**
 * One look at the dependencies for all who ask while it lasts, so that nobody's probes are a load on them. Whoever has
 * waited for `LOOK_MS` is told what the look before has seen: a dependency that hangs must not empty the load balancer.
 */
function sharedLook(service: Pick<SandboxService, 'readiness'>): () => Promise<ReadinessView> {
  let running: Promise<ReadinessView> | null = null;
  let last: ReadinessView | null = null;
  const begin = async (): Promise<ReadinessView> => {
    try {
      last = await service.readiness();
      return last;
    } finally {
      running = null;
    }
  };
  return async () => {
    running ??= begin();
    const look = running;
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(resolve, LOOK_MS, null);
    const seen = await Promise.race([look, late]).finally(() => clearTimeout(timer));
    return seen ?? last ?? look;
  };
}

export function healthRoutes(app: App, { service, draining }: HealthRoutes): void {
  const look = sharedLook(service);
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
          'each as it is now, or, where one does not answer at once, as it was last known.',
        response: { 200: refer(Readiness, 'Ready.'), 503: refer(Readiness, 'Not ready, or shutting down.') },
      },
    },
    async (_request, reply) => {
      if (draining()) return reply.code(503).send({ ready: false, because: 'shutting down' });
      const readiness = await look();
      return reply.code(readiness.ready ? 200 : 503).send(readinessBody(readiness));
    },
  );
}
