import type { Container } from '../domain/container.ts';
import type { ContainerId, EngineMark, Fence, OwnerId, SandboxId } from '../domain/ids.ts';
import { isAbsent, isExpired, type LeaseRecord } from '../domain/sandbox.ts';
import type { Snapshot } from '../leases/lease-store.ts';
import type { Sightings, Suspicion } from './sightings.ts';

/** What one complete look at engine and store showed. */
export interface Scene {
  readonly me: OwnerId;
  readonly engine: EngineMark;
  readonly containers: readonly Container[];
  readonly snapshots: readonly Snapshot[];
  /** False for a store without peers: nobody else can own what has no record. */
  readonly seesPeers: boolean;
  readonly leaseMs: number;
}

export type ReconcileStep =
  /** Becomes this replica's: an expired record, or a running container without any. */
  | { readonly kind: 'adopt'; readonly id: SandboxId; readonly container: Container | null }
  /** An expired start or teardown with nothing running under the name: claim it and finish. */
  | { readonly kind: 'finish'; readonly id: SandboxId; readonly fence: Fence; readonly container: ContainerId | null }
  /** A record whose container has ended by itself. */
  | { readonly kind: 'end'; readonly id: SandboxId; readonly container: ContainerId }
  /** A container that no acquire will hand out. */
  | { readonly kind: 'stray'; readonly id: SandboxId; readonly container: ContainerId }
  /** Condemned, and named by a record that nobody can verify. */
  | { readonly kind: 'unsettled'; readonly id: SandboxId; readonly fence: Fence; readonly container: ContainerId }
  /** Condemned, and seen fit since: its removal was given up in another life of the store. It gets its name back. */
  | { readonly kind: 'heal'; readonly id: SandboxId; readonly container: ContainerId }
  /** A labelled container with a name that is none of ours: reported. */
  | { readonly kind: 'foreign'; readonly container: Container };

interface Known {
  readonly record: LeaseRecord | null;
  readonly unreadable: boolean;
  readonly now: number;
}

const ABSENT: Known = { record: null, unreadable: false, now: 0 };
const DEAD_STATES = new Set(['created', 'exited', 'dead']);

/** What each container is suspect of, from one look. */
export function suspects(scene: Scene): Map<ContainerId, Suspicion> {
  const known = index(scene.snapshots);
  const found = new Map<ContainerId, Suspicion>();
  for (const container of scene.containers) {
    const { role } = container;
    if (role.kind !== 'sandbox' && role.kind !== 'condemned') continue;
    const { record, unreadable, now } = known.get(role.id) ?? ABSENT;
    if (unreadable) continue;
    const suspicion = suspicionOf(container, record, now);
    if (suspicion !== null) found.set(container.id, suspicion);
  }
  return found;
}

function suspicionOf(container: Container, record: LeaseRecord | null, now: number): Suspicion | null {
  const named = record?.container === container.id;
  if (container.role.kind === 'condemned') {
    const underway = record?.state === 'destroying' || record?.state === 'starting';
    return underway ? null : 'condemned';
  }
  const dead = DEAD_STATES.has(container.state);
  if (record === null) return dead ? 'dead' : 'unowned';
  if (record.state === 'gone') return dead ? 'dead' : null;
  // The start may have found it rather than made it, or the store may have gone back to before its activation.
  if (record.state === 'starting') return !dead && isExpired(record, now) ? 'unowned' : null;
  return record.state === 'ready' && record.verified && !named ? 'stray' : null;
}

export type Present = ReadonlyMap<ContainerId, Container>;

export const presentIn = ({ containers }: Scene): Present => new Map(containers.map((one) => [one.id, one]));

/**
 * The scene in parts of about so many containers and records, with all that belongs to one sandbox in one part, so that
 * each can be planned by itself and other work be done in between.
 */
export function partsOf(scene: Scene, size: number): readonly Scene[] {
  const count = Math.ceil((scene.containers.length + scene.snapshots.length) / size);
  if (count <= 1) return [scene];
  const parts = Array.from({ length: count }, () => ({ containers: [] as Container[], snapshots: [] as Snapshot[] }));
  const partOf = (id: SandboxId) => parts[Number.parseInt(id.slice(0, 8), 16) % count]!;
  for (const container of scene.containers) {
    const { role } = container;
    ('id' in role ? partOf(role.id) : parts[0]!).containers.push(container);
  }
  for (const snapshot of scene.snapshots) partOf(snapshot.id).snapshots.push(snapshot);
  return parts.map((part) => ({ ...scene, ...part }));
}

/**
 * Everything to be done about one look, or a part of it, given what earlier ones saw. `present`: every container of the
 * whole look, whatever its name. Pure: `now` is this replica's monotonic clock.
 */
export function plan(scene: Scene, sightings: Sightings, now: number, present = presentIn(scene)): ReconcileStep[] {
  const known = index(scene.snapshots);
  const byId = new Map<SandboxId, Container[]>();
  const steps: ReconcileStep[] = [];
  for (const container of scene.containers) {
    const { role } = container;
    if (role.kind === 'foreign') steps.push({ kind: 'foreign', container });
    if (role.kind === 'sandbox') byId.set(role.id, [...(byId.get(role.id) ?? []), container]);
  }
  for (const { record, unreadable, now: storeNow } of known.values()) {
    if (record !== null && !unreadable) steps.push(...aboutRecord(scene, record, storeNow, byId, present));
  }
  for (const container of scene.containers) {
    const step = aboutContainer(scene, container, known, sightings, now);
    if (step !== null) steps.push(step);
  }
  return steps;
}

function aboutRecord(
  { me, engine }: Scene,
  record: LeaseRecord,
  now: number,
  byId: ReadonlyMap<SandboxId, readonly Container[]>,
  present: Present,
): ReconcileStep[] {
  const { id, state, fence, container } = record;
  const expired = isExpired(record, now);
  switch (state) {
    case 'gone':
      return [];
    case 'starting':
    case 'destroying': {
      if (!expired) return [];
      if (state === 'destroying') return [{ kind: 'finish', id, fence, container }];
      const [holder = null] = byId.get(id) ?? [];
      const dead = holder === null || DEAD_STATES.has(holder.state);
      return dead ? [{ kind: 'finish', id, fence, container: holder?.id ?? null }] : [];
    }
    case 'ready': {
      if (container === null || record.engine !== engine)
        return expired ? [{ kind: 'adopt', id, container: null }] : [];
      const seen = present.get(container);
      const ended = seen === undefined || DEAD_STATES.has(seen.state);
      if (ended) return expired || record.owner === me ? [{ kind: 'end', id, container }] : [];
      return expired ? [{ kind: 'adopt', id, container: null }] : [];
    }
  }
}

function aboutContainer(
  scene: Scene,
  container: Container,
  known: ReadonlyMap<SandboxId, Known>,
  sightings: Sightings,
  now: number,
): ReconcileStep | null {
  const { role, id } = container;
  if (role.kind !== 'sandbox' && role.kind !== 'condemned') return null;
  const { record, unreadable, now: storeNow } = known.get(role.id) ?? ABSENT;
  if (unreadable) return null;
  const suspicion = suspicionOf(container, record, storeNow);
  if (suspicion === null) return null;
  if (suspicion === 'unowned' && !scene.seesPeers) return { kind: 'adopt', id: role.id, container };
  const lasting = sightings.lasting(id, now);
  if (lasting === null || lasting < scene.leaseMs) return null;
  if (suspicion === 'unowned') return { kind: 'adopt', id: role.id, container };
  if (suspicion === 'condemned' && record?.state === 'ready' && record.container === id) {
    if (record.verified) return { kind: 'heal', id: role.id, container: id };
    return { kind: 'unsettled', id: role.id, fence: record.fence, container: id };
  }
  return { kind: 'stray', id: role.id, container: id };
}

/** A tombstone that has stood for its lease counts as no record. */
function index(snapshots: readonly Snapshot[]): Map<SandboxId, Known> {
  return new Map(
    snapshots.map((seen) => {
      const record = seen.kind === 'record' && !isAbsent(seen.record, seen.now) ? seen.record : null;
      return [seen.id, { record, unreadable: seen.kind === 'unreadable', now: seen.now }];
    }),
  );
}
