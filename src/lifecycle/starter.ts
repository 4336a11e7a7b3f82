import pLimit from 'p-limit';
import { BrokerError } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { ContainerId, Fence, OwnerId, SandboxId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock } from '../domain/timing.ts';
import type { ContainerRuntime, SpareContainer } from '../runtime/container-runtime.ts';

export interface StarterOptions {
  readonly owner: OwnerId;
  readonly runtime: Pick<ContainerRuntime, 'ensureImage' | 'create' | 'createSpare' | 'start' | 'waitReady' | 'look'>;
  readonly clock: Clock;
  readonly emit: Emit;
  /** How many containers are created and started at a time. */
  readonly parallelStarts: number;
  /** From the first call for a container until it answers; the pull of its image is not counted. */
  readonly startTimeoutMs: number;
}

export interface StartRequest {
  readonly id: SandboxId;
  readonly fence: Fence;
  readonly profile: Profile;
  readonly spec: string;
  readonly userId: string;
  readonly threadId: string;
}

/** Whether the start's lease may still be acted on. */
export type IsMine = () => boolean;

export interface Started {
  readonly container: ContainerId;
  readonly url: string;
}

/**
 * Makes containers and waits until they answer. `made` hears of the container as soon as there is one, so that a
 * start which fails afterwards can name what it leaves behind.
 */
export class Starter {
  readonly #options: StarterOptions;
  readonly #slots: ReturnType<typeof pLimit>;

  constructor(options: StarterOptions) {
    this.#options = options;
    this.#slots = pLimit(options.parallelStarts);
  }

  /**
   * A new, ready container; `name_taken` when one of this deployment has the name; `moved` when the lease went while an
   * image or a slot was waited for: nothing was made. Rejects as the runtime does.
   */
  async start(
    request: StartRequest,
    made: (container: ContainerId) => void,
    isMine: IsMine,
  ): Promise<Started | 'name_taken' | 'moved'> {
    const { runtime, clock, emit, startTimeoutMs } = this.#options;
    await runtime.ensureImage(request.profile);
    const began = await this.#slots(async () => {
      if (!isMine()) return 'moved';
      const before = clock.monotonic();
      const container = await this.#create(request);
      if (container === null) return 'name_taken';
      made(container);
      const created = clock.monotonic();
      await runtime.start(container);
      return { container, before, created, started: clock.monotonic() };
    });
    if (typeof began === 'string') return began;
    const { container, before, created, started } = began;
    const { url } = await runtime.waitReady(container, request.profile, startTimeoutMs - (started - before));
    emit({
      type: 'started',
      sandbox: request.id,
      fence: request.fence,
      container,
      createMs: created - before,
      startMs: started - created,
      readyMs: clock.monotonic() - started,
    });
    return { container, url };
  }

  /** True while no container is being created or started, and none waits for it. */
  get idle(): boolean {
    return this.#slots.activeCount + this.#slots.pendingCount === 0;
  }

  /** A new, ready container that belongs to nobody. Rejects as the runtime does; `made` hears of it as with `start`. */
  async startSpare(
    { profile, spec }: Pick<StartRequest, 'profile' | 'spec'>,
    made: (spare: SpareContainer) => void,
  ): Promise<{ readonly spare: SpareContainer; readonly url: string }> {
    const { owner, runtime, clock, startTimeoutMs } = this.#options;
    await runtime.ensureImage(profile);
    const began = clock.monotonic();
    const spare = await this.#slots(async () => {
      const created = await runtime.createSpare({ profile, spec, owner });
      made(created);
      await runtime.start(created.container);
      return created;
    });
    const left = startTimeoutMs - (clock.monotonic() - began);
    const { url } = await runtime.waitReady(spare.container, profile, left);
    return { spare, url };
  }

  /** Waits until a container that was found answers. */
  async ready(container: ContainerId, profile: Profile): Promise<{ url: string }> {
    return this.#options.runtime.waitReady(container, profile, this.#options.startTimeoutMs);
  }

  /** Null when the name is taken. A create whose reply was lost may have been carried out: its container is known by its name and its fence. */
  async #create({ id, fence, profile, spec, userId, threadId }: StartRequest): Promise<ContainerId | null> {
    const { runtime, owner } = this.#options;
    try {
      const created = await runtime.create({ id, profile, spec, owner, fence, userId, threadId });
      return created === 'name_taken' ? null : (created as ContainerId);
    } catch (error) {
      if (!(error instanceof BrokerError) || error.code === 'foreign_container') throw error;
      const seen = await runtime.look({ sandbox: id });
      const ours = (seen.kind === 'stopped' || seen.kind === 'running') && seen.container.labels.fence === fence;
      if (!ours) throw error;
      return seen.container.id;
    }
  }
}
