import type { Container } from '../domain/container.ts';
import { codeOf, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { ContainerId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime, SpareContainer } from '../runtime/container-runtime.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Engine } from './engine.ts';
import { RemovalBackoff } from './removal-backoff.ts';
import { Sightings } from './sightings.ts';
import { planSpares, type SpareKind, type SparePlan, unpooled } from './spare-plan.ts';
import type { Starter } from './starter.ts';
import type { Teardown } from './teardown.ts';

export interface SparesOptions {
  readonly store: Pick<LeaseStore, 'owner' | 'pool' | 'addSpare' | 'tendSpares' | 'leaveSpares'>;
  readonly runtime: Pick<ContainerRuntime, 'list'>;
  readonly engine: Engine;
  readonly starter: Starter;
  readonly teardown: Teardown;
  readonly tasks: BackgroundTasks;
  readonly backoff: RemovalBackoff;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly kinds: readonly SpareKind[];
  /** 0: no limit. */
  readonly maxSandboxes: number;
  readonly leaseMs: number;
  /** The pause after a start that failed; it doubles with each further one. */
  readonly firstPauseMs: number;
}

/** How long the pool waits before it looks again whether anybody still waits for a sandbox. */
const GIVE_WAY_MS = 1_000;

/**
 * Keeps the pool of spares: one replica at a time makes what is missing, one after the other, and removes what is of no
 * use. A spare is added to the pool once it answers, and taken out of it by being claimed in the store.
 */
export class Spares {
  readonly #options: SparesOptions;
  readonly #sightings = new Sightings();
  /** By profile. */
  readonly #pauses: RemovalBackoff<string>;
  readonly #someWanted: boolean;
  /** The last list of anybody showed some. */
  #someSeen = false;
  #tending = false;
  #ready: ReadonlyMap<string, number> = new Map();

  constructor(options: SparesOptions) {
    this.#options = options;
    this.#pauses = new RemovalBackoff<string>(options.firstPauseMs);
    this.#someWanted = options.kinds.some(({ profile }) => profile.spares > 0);
  }

  /** By profile: how many were there when this replica last looked, and how many are wanted. */
  levels(): ReadonlyMap<string, { readonly ready: number; readonly wanted: number }> {
    const { kinds } = this.#options;
    return new Map(
      kinds.map(({ profile: { name, spares } }) => [name, { ready: this.#ready.get(name) ?? 0, wanted: spares }]),
    );
  }

  /** Told of every list: where none are wanted, some may be left of a time when there were. */
  see(containers: readonly Container[]): void {
    this.#someSeen = containers.some(({ role }) => role.kind === 'spare');
  }

  /**
   * Brings the pool to what is wanted, if no peer does. Whoever waits for a sandbox goes first. Rejects when store or
   * engine does not answer.
   */
  async pass(stopping: AbortSignal): Promise<void> {
    const { starter, clock } = this.#options;
    /** How many are still made in this pass: those that end as soon as they answered are made again by a later one. */
    let left: number | null = null;
    try {
      for (;;) {
        const plan = await this.#plan();
        if (plan === null) return;
        left ??= plan.make.length;
        for (const spare of plan.retire) this.#remove(spare, false);
        for (const spare of plan.forgotten) this.#remove(spare, true);
        const next = plan.make.find(({ profile }) => this.#pauses.mayTry(profile.name, clock.monotonic()));
        if (next === undefined || left === 0 || stopping.aborted) return;
        if (starter.idle) {
          left -= 1;
          await this.#make(next);
        } else await clock.pause(GIVE_WAY_MS, stopping);
      }
    } finally {
      this.#tending = false;
    }
  }

  /** Goes on tending the pool while a slow start is under way. To be called at least twice a lease. */
  async stay(): Promise<void> {
    if (this.#tending) await this.#options.store.tendSpares();
  }

  /** A peer may tend the pool from now on. */
  leave(): Promise<void> {
    return this.#options.store.leaveSpares();
  }

  /** Removes those that this replica made and that nobody has claimed. Rejects when the engine does not answer. */
  async removeOwn(): Promise<void> {
    const { store, runtime, teardown } = this.#options;
    const own = (await runtime.list()).filter(
      ({ role, labels }) => role.kind === 'spare' && labels.owner === store.owner,
    );
    await Promise.all(own.map(({ id, name }) => teardown.removeSpare({ container: id, name })));
  }

  /** Null: a peer tends the pool, or there is nothing that could be tended. */
  async #plan(): Promise<SparePlan | null> {
    const { store, runtime, engine, clock, kinds, maxSandboxes, leaseMs } = this.#options;
    const mark = await engine.mark();
    const pool = await store.pool();
    if (!this.#someWanted && !this.#someSeen && pool.spares.length === 0) return null;
    const containers = await runtime.list();
    const now = clock.monotonic();
    this.#sightings.note(new Map(unpooled({ pool, containers }).map(({ id }) => [id, 'stray'])), now);
    const isForgotten = (container: ContainerId): boolean => (this.#sightings.lasting(container, now) ?? 0) >= leaseMs;
    const plan = planSpares({ engine: mark, pool, containers, kinds, maxSandboxes, isForgotten });
    this.#ready = plan.ready;
    if (plan.retire.length + plan.forgotten.length + plan.make.length === 0) return null;
    this.#tending = await store.tendSpares();
    return this.#tending ? plan : null;
  }

  #remove(spare: SpareContainer, forgotten: boolean): void {
    const { teardown, tasks, backoff, clock } = this.#options;
    if (backoff.mayTry(spare.container, clock.monotonic())) tasks.add(teardown.removeSpare(spare, forgotten));
  }

  async #make(kind: SpareKind): Promise<void> {
    const { store, engine, starter, teardown, clock, emit } = this.#options;
    const { profile, spec } = kind;
    let made: SpareContainer | null = null;
    try {
      const createdAt = clock.wall();
      const { spare, url } = await starter.startSpare(kind, (container) => {
        made = container;
      });
      await store.addSpare({ ...spare, engine: await engine.mark(), url, profile: profile.name, spec, createdAt });
      this.#pauses.succeeded(profile.name);
      emit({ type: 'spare-added', profile: profile.name, container: spare.container });
    } catch (error) {
      this.#pauses.failed(profile.name, clock.monotonic());
      emit({ type: 'spare-failed', profile: profile.name, code: codeOf(error), message: messageOf(error) });
      if (made !== null) await teardown.removeSpare(made);
    }
  }
}
