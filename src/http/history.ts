import type { ErrorCode } from '../domain/errors.ts';
import type { SandboxService } from '../service/api.ts';
import type { App } from './app.ts';
import { pathId } from './sandboxes.ts';
import { refer, SandboxEvents, SandboxLogs, SandboxPath } from './schemas.ts';
import { eventsBody, logsBody } from './views.ts';

const PROBLEMS: readonly ErrorCode[] = ['invalid_request', 'sandbox_not_found', 'store_unavailable'];

/** Why a sandbox is as it is. */
export function historyRoutes(app: App, service: SandboxService): void {
  app.get(
    '/sandboxes/:id/events',
    {
      config: { action: 'read', problems: PROBLEMS },
      schema: {
        operationId: 'getSandboxEvents',
        tags: ['sandboxes'],
        summary: 'What happened to a sandbox',
        description:
          'Oldest first, told by all replicas; any of them answers alike. Kept for a day after the last entry, at most ' +
          '100 of its life and 20 of its use. Never counts as activity.',
        params: SandboxPath,
        response: { 200: refer(SandboxEvents, 'What is known.') },
      },
    },
    async (request) => eventsBody(await service.events(pathId(request))),
  );

  app.get(
    '/sandboxes/:id/logs',
    {
      config: {
        action: 'read',
        problems: [...PROBLEMS, 'record_unreadable', 'runtime_timeout', 'runtime_unavailable'],
      },
      schema: {
        operationId: 'getSandboxLogs',
        tags: ['sandboxes'],
        summary: "The last log lines of a sandbox's container",
        description:
          'At most 20 lines and 4 kB, without the values of its environment. Also of one that ended by itself, for an ' +
          'hour. Never counts as activity.',
        params: SandboxPath,
        response: { 200: refer(SandboxLogs, 'What it said last.') },
      },
    },
    async (request) => logsBody(await service.logs(pathId(request))),
  );
}
