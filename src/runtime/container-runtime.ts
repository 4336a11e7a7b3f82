import type { Container, Sighting } from '../domain/container.ts';
import type { ContainerId, EngineMark, Fence, OwnerId, SandboxId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';

/**
 * The container engine, as far as the broker needs it. It sees one deployment's containers only.
 *
 * - Every method has a deadline of its own and settles by it, whatever the daemon does. The pull of an image is
 *   bounded by its progress instead.
 * - Errors are `BrokerError`s: `runtime_timeout` (no answer in time; it may still be carried out),
 *   `runtime_unavailable` (no connection, or an answer that is no answer), `foreign_container`, `image_unavailable`,
 *   `sandbox_start_failed`.
 * - Nothing here decides: whether a container may be removed is the caller's matter.
 */
export interface ContainerRuntime {
  /**
   * The value kept inside this engine by which it is known; made at the first call ever. Stable across replicas and
   * restarts of the daemon.
   */
  mark(): Promise<EngineMark>;

  /**
   * The name of the note in this engine that brokers of this deployment share a lease store; null where there is none.
   * `leave`: leaves one, which stays for good. Idempotent.
   */
  sharedNote(leave: boolean): Promise<string | null>;

  /** All containers of this deployment, running or not, in one call. A failed list rejects; it is never empty. */
  list(): Promise<readonly Container[]>;

  /**
   * Looks for one container by id, or by its exact name. Never rejects, and never waits for a container's lock.
   * `stopped`: created, exited or dead. `unknown` is also one that is paused, restarting or being removed (cause
   * `sandbox_unsettled`), and a container of somebody else (cause `foreign_container`). By id a condemned container
   * is found too: its role says so.
   */
  look(target: LookTarget): Promise<Sighting>;

  /** True if the profile's image is in the engine. */
  hasImage(profile: Profile): Promise<boolean>;

  /**
   * Makes the profile's image available according to its `pull`; any number of waiting callers share one pull.
   * Rejects with `image_unavailable`.
   */
  ensureImage(profile: Profile): Promise<void>;

  /**
   * Creates a container, not started. `name_taken`: a container of this deployment has the name. Rejects with
   * `foreign_container` when somebody else's has, and leaves it untouched. When the reply is lost the container may
   * exist: look for it by name.
   */
  create(request: CreateRequest): Promise<ContainerId | 'name_taken'>;

  /**
   * As `create`, for a container that belongs to nobody yet, under a new spare name. When the reply is lost the
   * container may exist: the list shows it.
   */
  createSpare(request: SpareRequest): Promise<SpareContainer>;

  /**
   * Gives a spare the sandbox's name, by the name it was made under: whoever comes late to one that was dedicated or
   * condemned meanwhile finds nothing. `named`: it has the sandbox's name, also if it had it. `name_taken`: another
   * container of this deployment has that. `gone`: there is no such spare any more. Rejects with `foreign_container`
   * when somebody else's container has the sandbox's name. Idempotent.
   */
  dedicate(id: SandboxId, spare: SpareContainer): Promise<'named' | 'name_taken' | 'gone'>;

  /**
   * Renames a spare, by the name it was made under, to the condemned name of `spareId(container)`. True if it has that
   * name now, also if it had it; false: there is no such spare any more. Idempotent.
   */
  condemnSpare(spare: SpareContainer): Promise<boolean>;

  /**
   * Starts it; already running is success. A port that the engine chose and did not get is tried again a few times.
   * Rejects with `sandbox_start_failed` and the engine's words; the container is then still there.
   */
  start(container: ContainerId): Promise<void>;

  /**
   * Waits until the container's address is visible, then until the profile's readiness path answers 200 there, while
   * the container runs. Rejects with `sandbox_not_ready` (last status and last log lines in the message) at
   * `deadlineMs` from now or the profile's own timeout, whichever comes first; with `sandbox_start_failed` when the
   * container ended meanwhile.
   */
  waitReady(container: ContainerId, profile: Profile, deadlineMs: number): Promise<{ readonly url: string }>;

  /**
   * Renames by container id to the condemned name. True if this very call did it, false if it has that name already.
   * A container that is gone: false. Idempotent; when the reply was lost, the next call says false.
   */
  condemn(id: SandboxId, container: ContainerId): Promise<boolean>;

  /**
   * Gives a condemned container the sandbox's name back, by container id. A container that is gone, or a name that
   * another one has: nothing happens. Idempotent.
   */
  giveBack(id: SandboxId, container: ContainerId): Promise<void>;

  /**
   * Stops (unless `onlyIfStopped`) and removes the container that has the condemned name of this pair, and only that.
   * Resolves once it is gone, also if it was: `removed`. `left`: with `onlyIfStopped`, it turned out to run.
   * `kill` ends it without the stop's grace. Anonymous volumes go with it. Rejects when it cannot be told that it is
   * gone; sending it again is harmless.
   */
  remove(id: SandboxId, container: ContainerId, how: RemoveHow): Promise<'removed' | 'left'>;

  /**
   * How a container ended, with its last log lines (at most 20, at most 4 kB, without the environment's values); null
   * when it is gone or not of this deployment. One that runs has no exit code.
   */
  postMortem(container: ContainerId): Promise<PostMortem | null>;

  /**
   * Follows what happens to this deployment's containers. `opened` is told once the engine listens: everything from then
   * on is told in order, and something of the moments before perhaps too. Resolves when `signal` aborts or the runtime
   * is closed; rejects with `runtime_unavailable` or `runtime_timeout` when the stream cannot be opened or breaks.
   */
  watch(watcher: Watcher, signal: AbortSignal): Promise<void>;

  /** What the engine's machine has for all containers together. */
  resources(): Promise<EngineResources>;

  /** Answers when the daemon does. */
  ping(): Promise<void>;
  /** Ends calls in flight and refuses later ones with `runtime_unavailable`. Idempotent. */
  close(): Promise<void>;
}

export interface EngineResources {
  readonly memoryBytes: number;
  readonly cpus: number;
}

export type LookTarget = { readonly container: ContainerId } | { readonly sandbox: SandboxId };

export interface CreateRequest {
  readonly id: SandboxId;
  readonly profile: Profile;
  readonly spec: string;
  readonly owner: OwnerId;
  readonly fence: Fence;
  readonly userId: string;
  readonly threadId: string;
}

export interface SpareContainer {
  readonly container: ContainerId;
  readonly name: string;
}

export type SpareRequest = Pick<CreateRequest, 'profile' | 'spec' | 'owner'>;

export type RemoveHow = 'stop' | 'kill' | 'onlyIfStopped';

export interface PostMortem {
  readonly exitCode: number | null;
  readonly reason: string;
  readonly endedAt: number | null;
  readonly logTail: string;
}

export interface Watcher {
  opened(): void;
  changed(change: ContainerChange): void;
}

/** `started` also after a pause. `exitCode` where it ended and the engine says. */
export interface ContainerChange {
  readonly container: ContainerId;
  readonly kind: 'started' | 'ended' | 'renamed' | 'paused' | 'removed';
  readonly exitCode: number | null;
}
