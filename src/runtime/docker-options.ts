import type { Emit } from '../domain/events.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock, NewId } from '../domain/timing.ts';
import type { AddressRules } from './addresses.ts';
import type { DockerConnection } from './docker-daemon.ts';

/** A pull that says nothing for this long has failed: engines are silent while they check a large layer. */
export const PULL_IDLE_MS = 60_000;

export interface DockerRuntimeOptions extends AddressRules {
  readonly deployment: string;
  readonly namePrefix: string;
  readonly connection: DockerConnection;
  /** Deadline of one call of the daemon, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a container may take to end by itself before it is killed, in milliseconds; below `timeoutMs`. */
  readonly stopGraceMs: number;
  /** In milliseconds; `PULL_IDLE_MS` unless said. */
  readonly pullIdleMs?: number;
  /** By name: what containers that are found were made of. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly emit: Emit;
}
