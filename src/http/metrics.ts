import { Type } from 'typebox';
import type { App } from './app.ts';

export interface Metrics {
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export function metricsRoutes(app: App, metrics: Metrics): void {
  app.get(
    '/metrics',
    {
      config: { quiet: true, problems: ['internal_error'] },
      schema: {
        operationId: 'getMetrics',
        tags: ['operation'],
        summary: 'Metrics of this replica in Prometheus text format',
        produces: ['text/plain'],
        response: { 200: Type.String({ description: 'Prometheus text.' }) },
      },
    },
    async (_request, reply) => {
      const { contentType, body } = await metrics.render();
      return reply.type(contentType).send(body);
    },
  );
}
