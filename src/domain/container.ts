import type { ContainerId, Fence, OwnerId } from './ids.ts';
import type { ContainerRole } from './names.ts';

/** One container as an engine's list shows it. */
export interface Container {
  readonly id: ContainerId;
  readonly name: string;
  readonly role: ContainerRole;
  readonly state: ContainerState;
  /** What was known when it was created; every part may be missing or unreadable. */
  readonly labels: ContainerLabels;
  /** Epoch milliseconds (whole seconds); null: unknown age. */
  readonly createdAt: number | null;
  /** Where it answers; null while no address is known (not running, or no published port). */
  readonly url: string | null;
}

export interface ContainerLabels {
  readonly profile: string | null;
  readonly spec: string | null;
  readonly owner: OwnerId | null;
  readonly fence: Fence | null;
  readonly userId: string | null;
  readonly threadId: string | null;
}

/** `running` is the only state in which a container may be handed out: a paused one is not fit. */
export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';

/**
 * What looking for one container told. `unknown` (an error, a timeout, another engine) is never treated as `gone`.
 */
export type Sighting =
  | { readonly kind: 'running'; readonly container: Container }
  | { readonly kind: 'stopped'; readonly container: Container }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unknown'; readonly cause: unknown };
