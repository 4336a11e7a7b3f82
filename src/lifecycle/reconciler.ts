import type { Container } from '../domain/container.ts';
import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { type ContainerId, type EngineMark, NO_FENCE, type OwnerId, type SandboxId } from '../domain/ids.ts';
import { type ShownState, shownState } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { FoundContainer, LeaseStore, Snapshot } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Census } from './census.ts';
import type { Endings } from './endings.ts';
import type { Engine } from './engine.ts';
import type { Liveness } from './liveness.ts';
import { partsOf, plan, presentIn, type ReconcileStep, type Scene, suspects } from './reconcile-plan.ts';
import type { RemovalBackoff } from './removal-backoff.ts';
import type { Sightings, Suspicion } from './sightings.ts';
import type { Spares } from './spares.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface ReconcilerOptions {
  readonly store: Pick<LeaseStore, 'owner' | 'seesPeers' | 'page' | 'adopt' | 'claim'>;
  readonly runtime: Pick<ContainerRuntime, 'list' | 'giveBack'>;
  readonly engine: Engine;
  readonly census: Pick<Census, 'begin' | 'note'>;
  readonly endings: Endings;
  readonly liveness: Liveness;
  readonly spares: Pick<Spares, 'see'>;
  readonly teardown: Teardown;
  readonly tracked: TrackedLeases;
  readonly sightings: Sightings;
  readonly backoff: RemovalBackoff;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly leaseMs: number;
}

const PAGE = 200;
/** How many containers and records are judged in one go: some milliseconds. */
const PART = 1_000;

/**
 * Brings engine and store together again: one look at both, a pure plan, then its steps. Each step is judged anew by
 * the store, so that a plan which is out of date does nothing. Removals go on after the pass.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #reported = new Set<ContainerId>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** One pass. Rejects when engine or store did not answer; nothing is concluded from half a look. */
  async pass(): Promise<void> {
    const { teardown, sightings, backoff, clock, emit } = this.#options;
    const began = clock.monotonic();
    const scene = await this.#look();
    const now = clock.monotonic();
    const parts = partsOf(scene, PART);
    const suspected = new Map<ContainerId, Suspicion>();
    for (const part of parts) {
      for (const [container, suspicion] of suspects(part)) suspected.set(container, suspicion);
      await this.#breathe(parts);
    }
    sightings.note(suspected, now);
    const present = presentIn(scene);
    backoff.keepOnly(present);
    teardown.keepOnly(present);
    const steps: ReconcileStep[] = [];
    for (const part of parts) {
      steps.push(...plan(part, sightings, now, present));
      await this.#breathe(parts);
    }
    for (const step of steps) await this.#carryOut(step, scene.engine);
    emit({
      type: 'reconcile-pass',
      containers: scene.containers.length,
      steps: steps.length,
      owned: countsOf(scene.snapshots, scene.me),
      fleet: countsOf(scene.snapshots, null),
      unreadable: scene.snapshots.filter(({ kind }) => kind === 'unreadable').length,
      suspects: {
        count: suspected.size,
        oldestMs: Math.max(0, ...[...suspected.keys()].map((id) => sightings.lasting(id, now) ?? 0)),
      },
      durationMs: clock.monotonic() - began,
    });
  }

  /** Lets other work be done between the parts of a large scene. */
  async #breathe(parts: readonly Scene[]): Promise<void> {
    if (parts.length > 1) await this.#options.clock.pause(0);
  }

  /** The list comes first: what appears in the store afterwards has a live lease, and is left alone. */
  async #look(): Promise<Scene> {
    const { store, runtime, engine, census, liveness, spares, sightings, leaseMs } = this.#options;
    try {
      const mark = await engine.settle();
      const told = liveness.events;
      const began = await census.begin();
      const containers = await runtime.list();
      await census.note(began, containers);
      liveness.compare(containers, told);
      spares.see(containers);
      const snapshots: Snapshot[] = [];
      for (let after: SandboxId | null | undefined; after !== null; ) {
        const { items, next }: { items: readonly Snapshot[]; next: SandboxId | null } = await store.page(
          after ?? null,
          PAGE,
        );
        snapshots.push(...items.map((seen) => lean(seen, store.owner, mark)));
        after = next;
      }
      return { me: store.owner, engine: mark, containers, snapshots, seesPeers: store.seesPeers, leaseMs };
    } catch (error) {
      sightings.interrupted();
      throw error;
    }
  }

  async #carryOut(step: ReconcileStep, engine: EngineMark): Promise<void> {
    const { store, endings, teardown, backoff, clock, emit } = this.#options;
    try {
      switch (step.kind) {
        case 'adopt':
          return await this.#adopt(step.id, step.container, engine);
        case 'end':
          await endings.note(step.id, step.container); // looked at once more: the list may be older than the container
          return;
        case 'finish': {
          if (step.container !== null && !backoff.mayTry(step.container, clock.monotonic())) return;
          const claim = await store.claim(step.id, step.fence, { kind: 'expired', container: step.container });
          if (claim !== 'refused') teardown.begin(claim, 'expired');
          return;
        }
        case 'unsettled': {
          const claim = await store.claim(step.id, step.fence, { kind: 'unsettled', container: step.container });
          if (claim !== 'refused') teardown.begin(claim, 'unsettled');
          return;
        }
        case 'heal':
          if (backoff.mayTry(step.container, clock.monotonic())) await this.#heal(step.id, step.container);
          return;
        case 'stray':
          if (backoff.mayTry(step.container, clock.monotonic())) teardown.beginStray(step.id, step.container);
          return;
        case 'foreign':
          return this.#reportForeign(step.container);
      }
    } catch (error) {
      if (error instanceof BrokerError && error.code === 'record_unreadable' && 'id' in step) {
        emit({ type: 'record-unreadable', sandbox: step.id, message: messageOf(error) });
        return;
      }
      throw error;
    }
  }

  async #adopt(id: SandboxId, container: Container | null, engine: EngineMark): Promise<void> {
    const { store, tracked, clock, emit } = this.#options;
    const sentAt = clock.monotonic();
    const record = await store.adopt({ id, container: container === null ? null : asFound(container, engine) });
    if (record === 'refused') return;
    tracked.remember(record, sentAt, false);
    emit({ type: 'adopted', sandbox: id, fence: record.fence, container: record.container });
  }

  /** An engine that cannot rename this one holds up no other. */
  async #heal(id: SandboxId, container: ContainerId): Promise<void> {
    const { runtime, backoff, clock, emit } = this.#options;
    try {
      await runtime.giveBack(id, container);
      backoff.succeeded(container);
    } catch (error) {
      backoff.failed(container, clock.monotonic());
      const message = `its name could not be given back: ${messageOf(error)}`;
      emit({ type: 'removal-failed', reason: 'stray', message, sandbox: id, container });
    }
  }

  #reportForeign({ id, name }: Container): void {
    if (this.#reported.has(id)) return;
    this.#reported.add(id);
    this.#options.emit({ type: 'foreign-name', container: id, name });
  }
}

/** Without what a plan does not ask for: of 10,000 records only the rest is kept, so that collecting it holds nothing up. */
function lean(seen: Snapshot, me: OwnerId, engine: EngineMark): Snapshot {
  if (seen.kind !== 'record') return seen;
  const { record } = seen;
  const shared = {
    owner: record.owner === me ? me : record.owner,
    engine: record.engine === engine ? engine : record.engine,
  };
  const left = { url: null, profile: null, userId: null, threadId: null, spec: null, previous: null };
  return { ...seen, record: { ...record, ...shared, ...left } };
}

/** Sandboxes by state: one owner's, or with null all. */
function countsOf(snapshots: readonly Snapshot[], owner: OwnerId | null): Record<ShownState, number> {
  const counts = { starting: 0, active: 0, warm: 0, destroying: 0 };
  for (const seen of snapshots) {
    if (seen.kind !== 'record' || (owner !== null && seen.record.owner !== owner)) continue;
    const state = shownState(seen.record, seen.now);
    if (state !== null) counts[state] += 1;
  }
  return counts;
}

function asFound({ id, url, labels, createdAt }: Container, engine: EngineMark): FoundContainer {
  const { profile, userId, threadId, spec, fence } = labels;
  return { container: id, engine, url, since: fence ?? NO_FENCE, profile, userId, threadId, spec, createdAt };
}
