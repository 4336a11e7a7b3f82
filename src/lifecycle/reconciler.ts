import type { Container } from '../domain/container.ts';
import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import { type ContainerId, type EngineMark, NO_FENCE, type SandboxId } from '../domain/ids.ts';
import type { Clock } from '../domain/timing.ts';
import type { FoundContainer, LeaseStore, Snapshot } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Engine } from './engine.ts';
import { plan, type ReconcileStep, type Scene, suspects } from './reconcile-plan.ts';
import type { RemovalBackoff } from './removal-backoff.ts';
import type { Sightings } from './sightings.ts';
import type { Teardown } from './teardown.ts';
import type { TrackedLeases } from './tracked.ts';

export interface ReconcilerOptions {
  readonly store: Pick<LeaseStore, 'owner' | 'seesPeers' | 'page' | 'adopt' | 'claim' | 'end'>;
  readonly runtime: Pick<ContainerRuntime, 'list' | 'look' | 'postMortem' | 'giveBack'>;
  readonly engine: Engine;
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
      durationMs: clock.monotonic() - began,
    });
  }

  /** The list comes first: what appears in the store afterwards has a live lease, and is left alone. */
  async #look(): Promise<Scene> {
    const { store, runtime, engine, sightings, leaseMs } = this.#options;
    try {
      const mark = await engine.settle();
      const containers = await runtime.list();
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
    const { store, runtime, teardown, backoff, clock, emit } = this.#options;
    try {
      switch (step.kind) {
        case 'adopt':
          return await this.#adopt(step.id, step.container, engine);
        case 'end':
          return await this.#end(step.id, step.container);
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

  /** The list may be older than the container: it is looked at once more before it is said to have ended. */
  async #end(id: SandboxId, container: ContainerId): Promise<void> {
    const { store, runtime, tracked, clock, emit } = this.#options;
    const seen = await runtime.look({ container });
    if (seen.kind !== 'gone' && seen.kind !== 'stopped') return;
    const end = await runtime.postMortem(container).catch(() => null);
    const reason = end?.reason ?? 'its container was removed by somebody else';
    const exitCode = end?.exitCode ?? null;
    const why = { endedAt: end?.endedAt ?? clock.wall(), reason, exitCode, logTail: end?.logTail ?? '' };
    if ((await store.end(id, container, why)) === 'nothing') return;
    const mine = tracked.current(id, clock.monotonic());
    if (mine?.record.container === container) tracked.forget(id, mine.record.fence);
    emit({ type: 'ended', sandbox: id, container, reason, exitCode });
  }

  #reportForeign({ id, name }: Container): void {
    if (this.#reported.has(id)) return;
    this.#reported.add(id);
    this.#options.emit({ type: 'foreign-name', container: id, name });
  }
}

function asFound({ id, url, labels, createdAt }: Container, engine: EngineMark): FoundContainer {
  const { profile, userId, threadId, spec, fence } = labels;
  return { container: id, engine, url, since: fence ?? NO_FENCE, profile, userId, threadId, spec, createdAt };
}
