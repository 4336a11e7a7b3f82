import type { Container } from '../domain/container.ts';
import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { type ContainerId, type EngineMark, NO_FENCE, type SandboxId } from '../domain/ids.ts';
import { type ShownState, shownState } from '../domain/sandbox.ts';
import type { Clock } from '../domain/timing.ts';
import type { FoundContainer, LeaseStore, Snapshot } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Endings } from './endings.ts';
import type { Engine } from './engine.ts';
import type { Liveness } from './liveness.ts';
import { plan, type ReconcileStep, type Scene, suspects } from './reconcile-plan.ts';
import type { RemovalBackoff } from './removal-backoff.ts';
import type { Sightings } from './sightings.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface ReconcilerOptions {
  readonly store: Pick<LeaseStore, 'owner' | 'seesPeers' | 'page' | 'adopt' | 'claim'>;
  readonly runtime: Pick<ContainerRuntime, 'list' | 'giveBack'>;
  readonly engine: Engine;
  readonly endings: Endings;
  readonly liveness: Liveness;
  readonly teardown: Teardown;
  readonly tracked: TrackedLeases;
  readonly sightings: Sightings;
  readonly backoff: RemovalBackoff;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly leaseMs: number;
}

const PAGE = 200;

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
    const { sightings, backoff, clock, emit } = this.#options;
    const began = clock.monotonic();
    const scene = await this.#look();
    const now = clock.monotonic();
    sightings.note(suspects(scene), now);
    backoff.keepOnly(new Set(scene.containers.map(({ id }) => id)));
    const steps = plan(scene, sightings, now);
    for (const step of steps) await this.#carryOut(step, scene.engine);
    emit({
      type: 'reconcile-pass',
      containers: scene.containers.length,
      steps: steps.length,
      owned: ownedOf(scene),
      durationMs: clock.monotonic() - began,
    });
  }

  /** The list comes first: what appears in the store afterwards has a live lease, and is left alone. */
  async #look(): Promise<Scene> {
    const { store, runtime, engine, liveness, sightings, leaseMs } = this.#options;
    try {
      const mark = await engine.settle();
      const told = liveness.events;
      const containers = await runtime.list();
      liveness.compare(containers, told);
      const snapshots: Snapshot[] = [];
      for (let after: SandboxId | null | undefined; after !== null; ) {
        const { items, next }: { items: readonly Snapshot[]; next: SandboxId | null } = await store.page(
          after ?? null,
          PAGE,
        );
        snapshots.push(...items);
        after = next;
      }
      return { me: store.owner, engine: mark, containers, snapshots, seesPeers: store.seesPeers, leaseMs };
    } catch (error) {
      sightings.interrupted();
      throw error;
    }
  }

  async #carryOut(step: ReconcileStep, engine: EngineMark): Promise<void> {
    const { store, runtime, endings, teardown, backoff, clock, emit } = this.#options;
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
          return await runtime.giveBack(step.id, step.container);
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

  #reportForeign({ id, name }: Container): void {
    if (this.#reported.has(id)) return;
    this.#reported.add(id);
    this.#options.emit({ type: 'foreign-name', container: id, name });
  }
}

/** This replica's sandboxes by state. */
function ownedOf({ me, snapshots }: Scene): Record<ShownState, number> {
  const owned = { starting: 0, active: 0, warm: 0, destroying: 0 };
  for (const seen of snapshots) {
    const state = seen.kind === 'record' && seen.record.owner === me ? shownState(seen.record, seen.now) : null;
    if (state !== null) owned[state] += 1;
  }
  return owned;
}

function asFound({ id, url, labels, createdAt }: Container, engine: EngineMark): FoundContainer {
  const { profile, userId, threadId, spec, fence } = labels;
  return { container: id, engine, url, since: fence ?? NO_FENCE, profile, userId, threadId, spec, createdAt };
}
