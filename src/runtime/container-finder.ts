import { BrokerError } from '../domain/errors.ts';
import { sandboxName } from '../domain/names.ts';
import { type ListEntry, type ListView, nameOf, readEntry, type Seen } from './container-list.ts';
import type { LookTarget } from './container-runtime.ts';
import type { DockerDaemon } from './docker-daemon.ts';
import { deploymentFilter } from './labels.ts';

export type Found =
  | ({ readonly kind: 'ours' } & Seen)
  /** The name or id is taken by a container without this deployment's label. */
  | { readonly kind: 'foreign'; readonly name: string }
  | { readonly kind: 'gone' };

/**
 * Looks for containers by the engine's list, which answers from memory: an inspect would wait for the lock of a
 * container whose stop hangs.
 */
export class ContainerFinder {
  readonly #daemon: DockerDaemon;
  readonly #view: ListView;

  constructor(daemon: DockerDaemon, view: ListView) {
    this.#daemon = daemon;
    this.#view = view;
  }

  /** The whole deployment, running or not, in one call. */
  async list(): Promise<readonly Seen[]> {
    const filters = { label: [deploymentFilter(this.#view.deployment)] };
    const entries = await this.#entries('list containers', filters);
    return entries.map((entry) => readEntry(entry, this.#view)).filter((seen) => seen !== null);
  }

  /** Rejects when the daemon cannot tell. */
  async find(target: LookTarget, limitMs?: number): Promise<Found> {
    if ('container' in target) {
      const what = `look for container ${target.container.slice(0, 12)}`;
      const entries = await this.#entries(what, { id: [target.container] }, limitMs);
      return this.#judge(entries.find(({ Id }) => Id === target.container));
    }
    return this.#judge(await this.#byName(sandboxName(this.#view.namePrefix, target.sandbox), limitMs));
  }

  /** True while any container has exactly this name. */
  async exists(name: string): Promise<boolean> {
    return (await this.#byName(name)) !== undefined;
  }

  #judge(entry: ListEntry | undefined): Found {
    if (entry === undefined) return { kind: 'gone' };
    const seen = readEntry(entry, this.#view);
    return seen === null ? { kind: 'foreign', name: nameOf(entry) } : { kind: 'ours', ...seen };
  }

  /** The engine takes names as patterns, so what it found is compared again. */
  async #byName(name: string, limitMs?: number): Promise<ListEntry | undefined> {
    const pattern = `^/?${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
    const entries = await this.#entries(`look for container ${name}`, { name: [pattern] }, limitMs);
    return entries.find((entry) => nameOf(entry) === name);
  }

  async #entries(what: string, filters: Record<string, string[]>, limitMs?: number): Promise<readonly ListEntry[]> {
    const reply: unknown = await this.#daemon.call(
      what,
      (docker, abortSignal) => docker.listContainers({ all: true, filters, abortSignal }),
      limitMs,
    );
    if (Array.isArray(reply) && reply.every(isEntry)) return reply;
    throw new BrokerError('runtime_unavailable', `the container engine sent no list: ${what}`);
  }
}

function isEntry(value: unknown): value is ListEntry {
  return typeof value === 'object' && value !== null && typeof (value as { Id?: unknown }).Id === 'string';
}
