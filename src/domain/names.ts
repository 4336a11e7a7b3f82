import { isSandboxId } from './identity.ts';
import { asSandboxId, type ContainerId, type SandboxId } from './ids.ts';

/** What a container's name says about it. */
export type ContainerRole =
  | { readonly kind: 'sandbox'; readonly id: SandboxId }
  | { readonly kind: 'condemned'; readonly id: SandboxId }
  | { readonly kind: 'spare' }
  | { readonly kind: 'foreign' };

/** The name under which an identity's container is found. */
export function sandboxName(prefix: string, id: SandboxId): string {
  return `${prefix}-${id}`;
}

/**
 * The name of a container on its way out. It carries the container's own id, so that a remover which was frozen
 * meanwhile finds nothing under it once the name was given back.
 */
export function condemnedName(prefix: string, id: SandboxId, container: ContainerId): string {
  return `${prefix}-condemned-${id}-${container.slice(0, 12)}`;
}

export function spareName(prefix: string, random: string): string {
  return `${prefix}-spare-${random}`;
}

/** What stands for an identity in the name of a spare on its way out: it has none. */
export function spareId(container: ContainerId): SandboxId {
  return asSandboxId(container.slice(0, 32));
}

/** Reads a container's name. A name that is none of ours is `foreign`, whatever its labels say. */
export function parseContainerName(prefix: string, name: string, container: ContainerId): ContainerRole {
  if (!name.startsWith(`${prefix}-`)) return { kind: 'foreign' };
  const rest = name.slice(prefix.length + 1);
  if (isSandboxId(rest)) return { kind: 'sandbox', id: rest };
  if (rest.startsWith('spare-')) return { kind: 'spare' };
  const [word, id, short, ...more] = rest.split('-');
  if (word === 'condemned' && id !== undefined && isSandboxId(id) && short !== undefined && more.length === 0) {
    if (container.startsWith(short) && short.length === 12) return { kind: 'condemned', id: asSandboxId(id) };
  }
  return { kind: 'foreign' };
}
