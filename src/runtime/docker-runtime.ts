import type Docker from 'dockerode';
import type { Container, Sighting } from '../domain/container.ts';
import { BrokerError } from '../domain/errors.ts';
import { asContainerId, type ContainerId, type EngineMark, type SandboxId } from '../domain/ids.ts';
import { condemnedName, sandboxName, spareId, spareName } from '../domain/names.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock, NewId } from '../domain/timing.ts';
import { ContainerFinder } from './container-finder.ts';
import { ContainerRemoval } from './container-removal.ts';
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
} from './container-runtime.ts';
import { ContainerStart } from './container-start.ts';
import { DockerDaemon, refusalOf } from './docker-daemon.ts';
import { type DockerRuntimeOptions, PULL_IDLE_MS } from './docker-options.ts';
import { engineMark, sharedNote } from './engine-mark.ts';
import { watchContainers } from './event-stream.ts';
import { Images } from './images.ts';
import { writeLabels } from './labels.ts';
import { DeploymentNetwork } from './network.ts';
import { postMortem } from './post-mortem.ts';
import { Redaction } from './redaction.ts';
import { sightingOf } from './sighting.ts';

/** The container runtime on a Docker engine: each method is a handful of calls of the daemon. */
export class DockerRuntime implements ContainerRuntime {
  readonly #deployment: string;
  readonly #namePrefix: string;
  readonly #newId: NewId;
  readonly #clock: Pick<Clock, 'wall'>;
  readonly #daemon: DockerDaemon;
  readonly #redaction: Redaction;
  readonly #finder: ContainerFinder;
  readonly #images: Images;
  readonly #starts: ContainerStart;
  readonly #removal: ContainerRemoval;

  constructor(options: DockerRuntimeOptions) {
    const { deployment, namePrefix, profiles, clock } = options;
    const daemon = new DockerDaemon(options);
    const redaction = new Redaction(profiles.values());
    const portOf = (profile: string | null): number | null => profiles.get(profile ?? '')?.port ?? null;
    const finder = new ContainerFinder(daemon, { deployment, namePrefix, rules: options, portOf });
    const network = new DeploymentNetwork({
      daemon,
      deployment,
      configured: options.network,
      newId: options.newId,
      clock,
    });
    this.#deployment = deployment;
    this.#namePrefix = namePrefix;
    this.#newId = options.newId;
    this.#clock = clock;
    this.#daemon = daemon;
    this.#redaction = redaction;
    this.#finder = finder;
    this.#images = new Images({
      daemon,
      clock,
      redaction,
      emit: options.emit,
      pullIdleMs: options.pullIdleMs ?? PULL_IDLE_MS,
    });
    this.#starts = new ContainerStart({
      daemon,
      finder,
      network,
      clock,
      redaction,
      deployment,
      bindHost: options.address === 'published' ? options.bindHost : null,
    });
    this.#removal = new ContainerRemoval({
      daemon,
      clock,
      stopGraceMs: options.stopGraceMs,
      exists: (name) => finder.exists(name),
    });
  }

  mark(): Promise<EngineMark> {
    return engineMark({ daemon: this.#daemon, deployment: this.#deployment, newId: this.#newId });
  }

  sharedNote(leave: boolean): Promise<string | null> {
    return sharedNote(this.#daemon, this.#deployment, leave);
  }

  async list(): Promise<readonly Container[]> {
    return (await this.#finder.list()).map(({ container }) => container);
  }

  async look(target: LookTarget): Promise<Sighting> {
    try {
      return sightingOf(await this.#finder.find(target));
    } catch (cause) {
      return { kind: 'unknown', cause };
    }
  }

  hasImage(profile: Profile): Promise<boolean> {
    return this.#images.has(profile);
  }

  ensureImage(profile: Profile): Promise<void> {
    return this.#images.ensure(profile);
  }

  async create({
    id,
    profile,
    spec,
    owner,
    fence,
    userId,
    threadId,
  }: CreateRequest): Promise<ContainerId | 'name_taken'> {
    const handout = { fence, userId, threadId };
    const labels = writeLabels({ deployment: this.#deployment, profile: profile.name, spec, owner, handout });
    const name = sandboxName(this.#namePrefix, id);
    const made = await this.#starts.create(name, labels, profile);
    return made ?? this.#whoHas(id, name);
  }

  async createSpare({ profile, spec, owner }: SpareRequest): Promise<SpareContainer> {
    const labels = writeLabels({ deployment: this.#deployment, profile: profile.name, spec, owner, handout: null });
    const name = spareName(this.#namePrefix, this.#newId());
    const container = await this.#starts.create(name, labels, profile);
    if (container === null) {
      throw new BrokerError('sandbox_start_failed', `the new name ${name} is taken in the engine`);
    }
    return { container, name };
  }

  async dedicate(id: SandboxId, spare: SpareContainer): Promise<'named' | 'name_taken' | 'gone'> {
    const name = sandboxName(this.#namePrefix, id);
    const answer = await this.#rename(spare.name, name);
    if (answer === 'gone') return (await this.#isNamed(spare.container, name)) ? 'named' : 'gone';
    return answer === 'conflict' ? this.#whoHas(id, name) : 'named';
  }

  async condemnSpare({ container, name }: SpareContainer): Promise<boolean> {
    const condemned = condemnedName(this.#namePrefix, spareId(container), container);
    const answer = await this.#rename(name, condemned);
    return answer === 'gone' ? this.#isNamed(container, condemned) : answer !== 'conflict';
  }

  start(container: ContainerId): Promise<void> {
    return this.#starts.start(container);
  }

  waitReady(container: ContainerId, profile: Profile, deadlineMs: number): Promise<{ readonly url: string }> {
    return this.#starts.waitReady(container, profile, deadlineMs);
  }

  async condemn(id: SandboxId, container: ContainerId): Promise<boolean> {
    const name = condemnedName(this.#namePrefix, id, container);
    const answer = await this.#rename(container, name);
    if (answer !== 'conflict') return answer === 'renamed';
    throw new BrokerError('foreign_container', `another container has the name ${name}`);
  }

  async giveBack(id: SandboxId, container: ContainerId): Promise<void> {
    await this.#rename(container, sandboxName(this.#namePrefix, id));
  }

  remove(id: SandboxId, container: ContainerId, how: RemoveHow): Promise<'removed' | 'left'> {
    return this.#removal.remove(condemnedName(this.#namePrefix, id, container), how);
  }

  postMortem(container: ContainerId): Promise<PostMortem | null> {
    return postMortem(
      { daemon: this.#daemon, deployment: this.#deployment, redaction: this.#redaction },
      asContainerId(container),
    );
  }

  watch(watcher: Watcher, signal: AbortSignal): Promise<void> {
    const now = this.#clock.wall();
    return watchContainers({ daemon: this.#daemon, deployment: this.#deployment, now }, watcher, signal);
  }

  async resources(): Promise<EngineResources> {
    const ask = async (docker: Docker, abortSignal: AbortSignal): Promise<unknown> =>
      docker.info({ abortSignal } as never);
    const info = await this.#daemon.call('info', ask);
    const { MemTotal, NCPU } = info as { MemTotal?: unknown; NCPU?: unknown };
    if (typeof MemTotal === 'number' && typeof NCPU === 'number') return { memoryBytes: MemTotal, cpus: NCPU };
    throw new BrokerError('runtime_unavailable', 'the container engine does not tell its memory and processors');
  }

  async ping(): Promise<void> {
    await this.#daemon.call('ping', async (docker, abortSignal) => docker.ping({ abortSignal } as never));
  }

  async close(): Promise<void> {
    this.#daemon.close();
  }

  async #isNamed(container: ContainerId, name: string): Promise<boolean> {
    const found = await this.#finder.find({ container });
    return found.kind === 'ours' && found.container.name === name;
  }

  /** By container id, so that of several at once the engine tells exactly one that it did it; a spare by its name. */
  async #rename(which: ContainerId | string, name: string): Promise<'renamed' | 'same' | 'conflict' | 'gone'> {
    try {
      await this.#daemon.call(`rename container ${shortened(which)} to ${name}`, (docker, abortSignal) =>
        docker.getContainer(which).rename({ name, abortSignal }),
      );
      return 'renamed';
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === null) throw error;
      if (refusal.status === 404 || /marked for removal/i.test(refusal.message)) return 'gone';
      if (/same name as its current name/i.test(refusal.message)) return 'same';
      if (refusal.status === 409) return 'conflict';
      throw error;
    }
  }

  /** The name was taken a moment ago. One that is free again by now is the same to callers: they look again. */
  async #whoHas(id: SandboxId, name: string): Promise<'name_taken'> {
    if ((await this.#finder.find({ sandbox: id })).kind !== 'foreign') return 'name_taken';
    throw new BrokerError(
      'foreign_container',
      `a container that is not of this deployment has the name ${name}: rename it or remove it`,
    );
  }
}

const shortened = (which: string): string => (/^[0-9a-f]{64}$/.test(which) ? which.slice(0, 12) : which);
