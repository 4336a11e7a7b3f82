import type { Emit } from '../domain/events.ts';
import type { Clock, Random } from '../domain/timing.ts';
import type { LeaseStore } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import { Acquire } from './acquire.ts';
import { Admission } from './admission.ts';
import { BackgroundTasks } from './background-tasks.ts';
import { Census } from './census.ts';
import { Destroy } from './destroy.ts';
import { Endings } from './endings.ts';
import { Engine } from './engine.ts';
import { Eviction } from './eviction.ts';
import { FailedStarts } from './failed-starts.ts';
import { Headroom } from './headroom.ts';
import { IdleReaper } from './idle-reaper.ts';
import { Images } from './images.ts';
import { Liveness } from './liveness.ts';
import { Reconciler } from './reconciler.ts';
import { RemovalBackoff } from './removal-backoff.ts';
import { Renewal } from './renewal.ts';
import { Shutdown } from './shutdown.ts';
import { Sightings } from './sightings.ts';
import type { SpareKind } from './spare-plan.ts';
import { Spares } from './spares.ts';
import { Starter } from './starter.ts';
import { Starts } from './starts.ts';
import { Teardown } from './teardown.ts';
import { TrackedLeases } from './tracked.ts';
import { Turns } from './turns.ts';

/** Durations in milliseconds. */
export interface LifecycleSettings {
  readonly leaseMs: number;
  readonly holdTtlMs: number;
  /** 0: nothing is idle. */
  readonly idleMs: number;
  readonly reconcileIntervalMs: number;
  readonly startTimeoutMs: number;
  readonly parallelStarts: number;
  readonly capacity: { readonly max: number; readonly perUser: number; readonly waitTimeoutMs: number };
  readonly profiles: ReadonlyMap<string, SpareKind>;
}

export interface LifecycleOptions {
  readonly store: LeaseStore;
  readonly runtime: ContainerRuntime;
  readonly settings: LifecycleSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: Emit;
}

export type Lifecycle = ReturnType<typeof assembleLifecycle>;

/** One replica's lifecycle, connected and at rest: nothing runs until it is called. */
export function assembleLifecycle({ store, runtime, settings, clock, random, emit }: LifecycleOptions) {
  const { leaseMs, holdTtlMs, idleMs, startTimeoutMs, parallelStarts, capacity, profiles } = settings;
  const tasks = new BackgroundTasks(clock);
  const tracked = new TrackedLeases(leaseMs);
  const backoff = new RemovalBackoff(settings.reconcileIntervalMs);
  const sightings = new Sightings();
  const engine = new Engine({ store, runtime, emit });
  const teardown = new Teardown({ store, runtime, engine, tracked, tasks, backoff, clock, emit, leaseMs });
  const endings = new Endings({ store, runtime, engine, tracked, clock, emit });
  const liveness = new Liveness({ runtime, tracked, endings, tasks, clock, emit });
  const failedStarts = new FailedStarts({ store, teardown, clock, leaseMs });
  const eviction = new Eviction({ store, teardown, tasks });
  const { waitTimeoutMs, ...limits } = capacity;
  const census = new Census({ store, runtime, engine, limited: limits.max > 0 || limits.perUser > 0 });
  const admission = new Admission({ store, eviction, census, clock, random, limits, waitTimeoutMs });
  const starter = new Starter({ owner: store.owner, runtime, clock, emit, parallelStarts, startTimeoutMs });
  const common = { store, runtime, engine, teardown, tracked, clock, emit };
  const starts = new Starts({ ...common, starter, failedStarts, holdTtlMs });
  const spares = new Spares({
    ...common,
    ...{ starter, tasks, backoff, leaseMs, maxSandboxes: capacity.max, firstPauseMs: settings.reconcileIntervalMs },
    kinds: [...profiles.values()],
  });
  return {
    tasks,
    tracked,
    engine,
    teardown,
    admission,
    census,
    endings,
    liveness,
    turns: new Turns(),
    images: new Images({ runtime, profiles: new Map([...profiles].map(([name, { profile }]) => [name, profile])) }),
    acquire: new Acquire({ ...common, admission, liveness, starts, startedAt: clock.monotonic() }),
    destroy: new Destroy({ ...common, patienceMs: startTimeoutMs + leaseMs }),
    renewal: new Renewal({ store, tracked, failedStarts, clock, emit }),
    headroom: new Headroom({
      ...{ runtime, emit, maxSandboxes: capacity.max },
      profiles: [...profiles.values()].map(({ profile }) => profile),
    }),
    reaper: new IdleReaper({ store, tracked, teardown, clock, idleMs }),
    reconciler: new Reconciler({ ...common, census, endings, liveness, spares, sightings, backoff, leaseMs }),
    shutdown: new Shutdown({ store, runtime, teardown, tracked, spares, clock, emit }),
    spares,
  };
}
