import type { SandboxService } from '../service/api.ts';
import type { App } from './app.ts';
import { refer, Status } from './schemas.ts';

export function statusRoutes(app: App, service: SandboxService): void {
  app.get(
    '/status',
    {
      config: { action: 'status', problems: ['store_unavailable'] },
      schema: {
        operationId: 'getStatus',
        tags: ['operation'],
        summary: 'This replica and the fleet',
        description: '`owner` is the id of the replica that answers; the counts are those of the fleet.',
        response: { 200: refer(Status, 'As it is now.') },
      },
    },
    () => service.status(),
  );
}
