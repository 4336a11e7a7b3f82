import type { Container } from '../domain/container.ts';
import type { ContainerId, EngineMark } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { SparePool } from '../leases/lease-store.ts';
import type { SpareContainer } from '../runtime/container-runtime.ts';

/** A profile, and the hash of what it makes of a container. */
export interface SpareKind {
  readonly profile: Profile;
  readonly spec: string;
}

export interface SpareScene {
  readonly engine: EngineMark;
  readonly pool: SparePool;
  /** Every container of the deployment. */
  readonly containers: readonly Container[];
  /** In the order in which they are served when the capacity does not do for all. */
  readonly kinds: readonly SpareKind[];
  /** `capacity.max`; 0: no limit. */
  readonly maxSandboxes: number;
  /** True if it has been outside the pool for so long that whoever was starting or claiming it is late. */
  readonly isForgotten: (container: ContainerId) => boolean;
}

export interface SparePlan {
  /** Dead, of an older spec, of no profile, or more than there is room for. */
  readonly retire: readonly SpareContainer[];
  readonly forgotten: readonly SpareContainer[];
  /** What is missing, one entry a spare. */
  readonly make: readonly SpareKind[];
  /** Usable spares by profile. */
  readonly ready: ReadonlyMap<string, number>;
}

/** Containers under a spare's name that the pool does not know: one is being started, or its start was cut short. */
export function unpooled({ pool, containers }: Pick<SpareScene, 'pool' | 'containers'>): readonly Container[] {
  const pooled = new Set(pool.spares.map(({ container }) => container));
  return containers.filter(({ id, role }) => role.kind === 'spare' && !pooled.has(id));
}

/**
 * What is to be done about the pool. Pure. Spares have what sandboxes leave of the capacity: as that gets less, they go,
 * the oldest first.
 */
export function planSpares(scene: SpareScene): SparePlan {
  const { pool, kinds, maxSandboxes } = scene;
  const running = new Set(
    scene.containers.filter(({ role, state }) => role.kind === 'spare' && state === 'running').map(({ id }) => id),
  );
  const forgotten = unpooled(scene)
    .filter(({ id }) => scene.isForgotten(id))
    .map(({ id, name }) => ({ container: id, name }));
  const make: SpareKind[] = [];
  const ready = new Map<string, number>();
  let room = maxSandboxes === 0 ? Number.POSITIVE_INFINITY : Math.max(0, maxSandboxes - pool.sandboxes);
  const used = new Set<ContainerId>();
  for (const kind of kinds) {
    const { profile, spec } = kind;
    const wanted = Math.min(profile.spares, room);
    room -= wanted;
    const usable = pool.spares
      .filter((spare) => spare.profile === profile.name && spare.spec === spec && spare.engine === scene.engine)
      .filter(({ container }) => running.has(container))
      .sort((a, b) => b.createdAt - a.createdAt)
      .slice(0, wanted);
    for (const { container } of usable) used.add(container);
    ready.set(profile.name, usable.length);
    for (let missing = wanted - usable.length; missing > 0; missing -= 1) make.push(kind);
  }
  const retire = pool.spares.filter(({ container }) => !used.has(container));
  return { retire, forgotten, make, ready };
}
