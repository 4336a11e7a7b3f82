import type { Container, Sighting } from '../src/domain/container.ts';
import { asContainerId, asEngineMark, type ContainerId, type SandboxId } from '../src/domain/ids.ts';
import { sandboxName } from '../src/domain/names.ts';
import type { ContainerRuntime, LookTarget, Watcher } from '../src/runtime/container-runtime.ts';

export const MARK = asEngineMark('bench');
const NOBODY = { owner: null, fence: null, userId: null, threadId: null, profile: 'default', spec: 'bench' };

export const containerOf = (id: SandboxId): ContainerId => asContainerId(id + id);
export const urlOf = (id: SandboxId): string => `http://127.0.0.1/${id}`;

/**
 * An engine that runs one container for each of these sandboxes, and keeps nothing of its own in memory: what it lists
 * is made when it is asked. Whatever would change something is refused.
 */
export function stubRuntime(running: readonly SandboxId[]): ContainerRuntime {
  const view = (id: SandboxId): Container => ({
    id: containerOf(id),
    name: sandboxName('bench', id),
    role: { kind: 'sandbox', id },
    state: 'running',
    labels: NOBODY,
    createdAt: 0,
    url: urlOf(id),
  });
  const look = (target: LookTarget): Sighting => {
    const id = 'sandbox' in target ? target.sandbox : (target.container.slice(0, 32) as SandboxId);
    return { kind: 'running', container: view(id) };
  };
  const watch = (watcher: Watcher, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      watcher.opened();
    });
  const answers: Partial<ContainerRuntime> = {
    mark: async () => MARK,
    list: async () => running.map(view),
    look: async (target) => look(target),
    ping: async () => undefined,
    close: async () => undefined,
    watch,
  };
  return new Proxy(answers as ContainerRuntime, {
    get: (target, name) =>
      Reflect.get(target, name) ?? (() => Promise.reject(new Error(`the stub engine does not do ${String(name)}`))),
  });
}
