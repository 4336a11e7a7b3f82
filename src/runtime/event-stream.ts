import { BrokerError, messageOf } from '../domain/errors.ts';
import { asContainerId } from '../domain/ids.ts';
import type { ContainerChange, Watcher } from './container-runtime.ts';
import type { DockerDaemon } from './docker-daemon.ts';
import { JsonLines } from './json-lines.ts';
import { deploymentFilter } from './labels.ts';

interface EngineEvent {
  readonly Type?: string;
  readonly Action?: string;
  readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
}

/** The engine begins to listen a moment after it has answered; what happened meanwhile it tells from its memory. */
const LOOK_BACK_S = 2;

const KINDS: Readonly<Record<string, ContainerChange['kind']>> = {
  start: 'started',
  unpause: 'started',
  rename: 'renamed',
  pause: 'paused',
  die: 'ended',
  destroy: 'removed',
};

export interface EventStreamOptions {
  readonly daemon: DockerDaemon;
  readonly deployment: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** As the port's `watch`. */
export async function watchContainers(
  { daemon, deployment, now }: EventStreamOptions,
  watcher: Watcher,
  signal: AbortSignal,
): Promise<void> {
  const since = Math.floor(now / 1000) - LOOK_BACK_S;
  const filters = { type: ['container'], event: Object.keys(KINDS), label: [deploymentFilter(deployment)] };
  const options = { since, filters: JSON.stringify(filters) };
  const stream: unknown = await daemon.call('follow events', async (docker, abortSignal) =>
    docker.getEvents({ ...options, abortSignal } as object),
  );
  const end = (): void => (stream as { destroy(): void }).destroy();
  signal.addEventListener('abort', end, { once: true });
  daemon.closed.addEventListener('abort', end, { once: true });
  const lines = new JsonLines<EngineEvent>();
  try {
    if (signal.aborted || daemon.closed.aborted) return;
    watcher.opened();
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      for (const event of lines.read(chunk)) tell(event, watcher);
    }
    throw new Error('the stream ended');
  } catch (error) {
    if (signal.aborted || daemon.closed.aborted) return;
    throw new BrokerError('runtime_unavailable', `the container engine's events broke off (${messageOf(error)})`, {
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', end);
    daemon.closed.removeEventListener('abort', end);
    end();
  }
}

function tell({ Action, Actor }: EngineEvent, watcher: Watcher): void {
  const kind = KINDS[Action ?? ''];
  if (kind === undefined || Actor?.ID === undefined) return;
  const exitCode = Number(Actor.Attributes?.exitCode ?? Number.NaN);
  watcher.changed({ container: asContainerId(Actor.ID), kind, exitCode: Number.isInteger(exitCode) ? exitCode : null });
}
