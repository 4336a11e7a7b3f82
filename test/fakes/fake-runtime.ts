import type { Container, Sighting } from '../../src/domain/container.ts';
import { BrokerError } from '../../src/domain/errors.ts';
import type { ContainerId, EngineMark, SandboxId } from '../../src/domain/ids.ts';
import { condemnedName, sandboxName, spareId, spareName } from '../../src/domain/names.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type {
  ContainerRuntime,
  CreateRequest,
  EngineResources,
  LookTarget,
  PostMortem,
  RemoveHow,
  SpareContainer,
  SpareRequest,
  Watcher,
} from '../../src/runtime/container-runtime.ts';
import { sightingOf } from '../../src/runtime/sighting.ts';
import type { FakeContainer, FakeEngine } from './fake-engine.ts';
import { FakePoints } from './fake-points.ts';

export type RuntimeMethod = keyof ContainerRuntime;

export interface FakeRuntimeOptions {
  readonly engine: FakeEngine;
  readonly deployment: string;
  readonly namePrefix: string;
}

/**
 * One replica's view of a `FakeEngine`. Every call takes effect in one piece. `points` stops calls, makes them fail,
 * loses their replies and counts them; a `look` that fails is `unknown`.
 */
export class FakeRuntime implements ContainerRuntime {
  readonly engine: FakeEngine;
  readonly points = new FakePoints<RuntimeMethod>();
  readonly #deployment: string;
  readonly #prefix: string;
  #closed = false;
  #breakStream: (error: Error) => void = () => undefined;

  constructor({ engine, deployment, namePrefix }: FakeRuntimeOptions) {
    this.engine = engine;
    this.#deployment = deployment;
    this.#prefix = namePrefix;
  }

  mark(): Promise<EngineMark> {
    return this.#run('mark', () => this.engine.mark(this.#deployment));
  }

  sharedNote(leave: boolean): Promise<string | null> {
    return this.#run('sharedNote', () => this.engine.sharedNote(this.#deployment, leave));
  }

  list(): Promise<readonly Container[]> {
    return this.#run('list', () => this.#ours().map((found) => this.engine.view(found, this.#prefix)));
  }

  async look(target: LookTarget): Promise<Sighting> {
    try {
      return await this.#run('look', () => this.#sight(target));
    } catch (cause) {
      return { kind: 'unknown', cause };
    }
  }

  hasImage(profile: Profile): Promise<boolean> {
    return this.#run('hasImage', () => this.engine.hasImage(profile.image));
  }

  ensureImage({ image, pull }: Profile): Promise<void> {
    return this.#run('ensureImage', () => {
      if (pull !== 'always' && this.engine.hasImage(image)) return;
      if (pull === 'never') throw new BrokerError('image_unavailable', `image ${image} is not in the engine`);
      this.engine.pull(image);
    });
  }

  create(request: CreateRequest): Promise<ContainerId | 'name_taken'> {
    return this.#run('create', () => {
      const { id, profile, spec, owner, fence, userId, threadId } = request;
      const name = sandboxName(this.#prefix, id);
      if (this.#isTaken(name)) return 'name_taken';
      return this.#add(name, profile, { profile: profile.name, spec, owner, fence, userId, threadId });
    });
  }

  createSpare({ profile, spec, owner }: SpareRequest): Promise<SpareContainer> {
    return this.#run('createSpare', () => {
      const name = spareName(this.#prefix, this.engine.serial());
      const nobody = { fence: null, userId: null, threadId: null };
      return { container: this.#add(name, profile, { profile: profile.name, spec, owner, ...nobody }), name };
    });
  }

  dedicate(id: SandboxId, spare: SpareContainer): Promise<'named' | 'name_taken' | 'gone'> {
    return this.#run('dedicate', () => {
      const name = sandboxName(this.#prefix, id);
      if (this.engine.find(spare.container)?.name === name) return 'named';
      const found = this.engine.named(spare.name);
      if (found === undefined) return 'gone';
      if (this.#isTaken(name)) return 'name_taken';
      this.engine.rename(found, name);
      return 'named';
    });
  }

  condemnSpare({ container, name }: SpareContainer): Promise<boolean> {
    return this.#run('condemnSpare', () => {
      const condemned = condemnedName(this.#prefix, spareId(container), container);
      if (this.engine.find(container)?.name === condemned) return true;
      const found = this.engine.named(name);
      if (found === undefined) return false;
      this.engine.rename(found, condemned);
      return true;
    });
  }

  start(container: ContainerId): Promise<void> {
    return this.#run('start', () => {
      const found = this.engine.find(container);
      if (found === undefined) throw new BrokerError('sandbox_start_failed', `no such container: ${container}`);
      if (found.state !== 'running') this.engine.run(container);
    });
  }

  /** Does not wait: a container that is not ready by now is not ready. */
  waitReady(container: ContainerId, profile: Profile): Promise<{ readonly url: string }> {
    return this.#run('waitReady', () => {
      const found = this.engine.find(container);
      const ended = found === undefined || ['created', 'exited', 'dead'].includes(found.state);
      if (ended) throw new BrokerError('sandbox_start_failed', `container ${container} ended: ${tailOf(found)}`);
      const { url } = this.engine.view(found, this.#prefix);
      if (url !== null && this.engine.isReady(found)) return { url };
      throw new BrokerError('sandbox_not_ready', `${profile.readiness.path} of ${container} did not answer 200`);
    });
  }

  condemn(id: SandboxId, container: ContainerId): Promise<boolean> {
    return this.#run('condemn', () => {
      const found = this.engine.find(container);
      const name = condemnedName(this.#prefix, id, container);
      if (found === undefined || found.name === name) return false;
      this.engine.rename(found, name);
      return true;
    });
  }

  giveBack(id: SandboxId, container: ContainerId): Promise<void> {
    return this.#run('giveBack', () => {
      const found = this.engine.find(container);
      const name = sandboxName(this.#prefix, id);
      if (found !== undefined && this.engine.named(name) === undefined) this.engine.rename(found, name);
    });
  }

  remove(id: SandboxId, container: ContainerId, how: RemoveHow): Promise<'removed' | 'left'> {
    return this.#run('remove', () => {
      const found = this.engine.named(condemnedName(this.#prefix, id, container));
      if (found === undefined) return 'removed';
      if (how === 'onlyIfStopped' && !['created', 'exited', 'dead'].includes(found.state)) return 'left';
      this.engine.vanish(found.id);
      return 'removed';
    });
  }

  postMortem(container: ContainerId): Promise<PostMortem | null> {
    return this.#run('postMortem', () => {
      const found = this.engine.find(container);
      if (found === undefined || found.deployment !== this.#deployment) return null;
      const reason = found.state === 'created' ? 'never started' : found.state;
      return found.end ?? { exitCode: null, reason, endedAt: null, logTail: '' };
    });
  }

  /** Follows until the signal aborts, the runtime is closed, or a point breaks it. */
  async watch(watcher: Watcher, signal: AbortSignal): Promise<void> {
    await this.#run('watch', () => undefined);
    const ended = Promise.withResolvers<void>();
    const stop = this.engine.watch(this.#deployment, (change) => watcher.changed(change));
    signal.addEventListener('abort', () => ended.resolve(), { once: true });
    this.#breakStream = (error) => ended.reject(error);
    watcher.opened();
    try {
      if (!signal.aborted) await ended.promise;
    } finally {
      stop();
    }
  }

  /** The stream of a `watch` under way breaks. */
  breakStream(error: Error): void {
    this.#breakStream(error);
  }

  resources(): Promise<EngineResources> {
    return this.#run('resources', () => this.engine.resources);
  }

  ping(): Promise<void> {
    return this.#run('ping', () => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async #run<T>(method: RuntimeMethod, effect: () => T): Promise<T> {
    if (this.#closed) throw new BrokerError('runtime_unavailable', 'the container runtime is closed');
    return this.points.run(method, effect);
  }

  #ours(): FakeContainer[] {
    return this.engine.containers.filter(({ deployment }) => deployment === this.#deployment);
  }

  #sight(target: LookTarget): Sighting {
    const found =
      'container' in target
        ? this.engine.find(target.container)
        : this.engine.named(sandboxName(this.#prefix, target.sandbox));
    if (found === undefined) return { kind: 'gone' };
    if (found.deployment !== this.#deployment) return sightingOf({ kind: 'foreign', name: found.name });
    return sightingOf({ kind: 'ours', container: this.engine.view(found, this.#prefix), probeUrl: null });
  }

  #isTaken(name: string): boolean {
    const holder = this.engine.named(name);
    if (holder === undefined) return false;
    if (holder.deployment === this.#deployment) return true;
    throw new BrokerError('foreign_container', `a container that is not of this deployment has the name ${name}`);
  }

  #add(name: string, profile: Profile, labels: Container['labels']): ContainerId {
    if (!this.engine.hasImage(profile.image)) {
      throw new BrokerError('image_unavailable', `image ${profile.image} is not in the engine`);
    }
    return this.engine.add({ name, deployment: this.#deployment, profile, labels }).id;
  }
}

function tailOf(found: FakeContainer | undefined): string {
  return found?.end?.logTail ?? 'nothing is left of it';
}
