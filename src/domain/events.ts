import type { ErrorCode } from './errors.ts';
import type { ContainerId, Fence, OwnerId, SandboxId } from './ids.ts';
import type { ShownState } from './sandbox.ts';

/** How a caller came by its sandbox. */
export const ORIGINS = ['created', 'spare', 'discovered', 'reclaimed', 'reused'] as const;
export type Origin = (typeof ORIGINS)[number];
/** Why a container is removed. */
export const REMOVAL_REASONS = [
  'idle',
  'capacity',
  'explicit',
  'residue',
  'failed-start',
  'expired',
  'stray',
  'unsettled',
  'shutdown',
  'replaced',
  'spare',
] as const;
export type RemovalReason = (typeof REMOVAL_REASONS)[number];

interface About {
  readonly sandbox: SandboxId;
  readonly fence?: Fence;
  readonly container?: ContainerId | null;
}

/**
 * What happens in the broker, told once, where it happens. Logs and metrics are made of these. Durations in
 * milliseconds. No user's text is in them.
 */
export type BrokerEvent =
  | ({ readonly type: 'acquired'; readonly origin: Origin; readonly durationMs: number } & About)
  | ({
      readonly type: 'acquire-failed';
      readonly code: ErrorCode;
      readonly message: string;
      readonly durationMs: number;
    } & About)
  | ({ readonly type: 'acquire-waits'; readonly owner: OwnerId } & About)
  | ({
      readonly type: 'started';
      readonly createMs: number;
      readonly startMs: number;
      readonly readyMs: number;
    } & About)
  | ({ readonly type: 'start-failed'; readonly code: ErrorCode; readonly message: string } & About)
  | ({ readonly type: 'released' } & About)
  | ({ readonly type: 'claimed'; readonly reason: RemovalReason } & About)
  | ({ readonly type: 'removed'; readonly reason: RemovalReason; readonly durationMs: number } & About)
  | ({ readonly type: 'removal-stopped'; readonly reason: RemovalReason; readonly because: string } & About)
  | ({ readonly type: 'removal-failed'; readonly reason: RemovalReason; readonly message: string } & About)
  | ({ readonly type: 'adopted' } & About)
  | ({ readonly type: 'ended'; readonly reason: string; readonly exitCode: number | null } & About)
  | ({ readonly type: 'lease-lost' } & About)
  | ({ readonly type: 'lease-reasserted' } & About)
  | ({ readonly type: 'record-unreadable'; readonly message: string } & About)
  /** The store was away for so long that lines of the sandboxes' histories were given up. */
  | { readonly type: 'history-dropped'; readonly lines: number }
  | { readonly type: 'spare-added'; readonly profile: string; readonly container: ContainerId }
  | {
      readonly type: 'spare-failed';
      readonly profile: string;
      readonly code: ErrorCode | null;
      readonly message: string;
    }
  | { readonly type: 'foreign-name'; readonly container: ContainerId; readonly name: string }
  | { readonly type: 'renewal-pass'; readonly renewed: number; readonly durationMs: number }
  | {
      readonly type: 'reconcile-pass';
      readonly containers: number;
      readonly steps: number;
      /** This replica's sandboxes by state. */
      readonly owned: Readonly<Record<ShownState, number>>;
      /** All sandboxes of the fleet by state. */
      readonly fleet: Readonly<Record<ShownState, number>>;
      /** How many records cannot be read. */
      readonly unreadable: number;
      /** Containers that no record accounts for, and for how long the first of them has been seen so. */
      readonly suspects: { readonly count: number; readonly oldestMs: number };
      readonly durationMs: number;
    }
  /** A pass of a loop that succeeded; `lagMs`: how much later than planned it began. */
  | {
      readonly type: 'loop-pass';
      readonly loop: string;
      readonly intervalMs: number;
      readonly durationMs: number;
      readonly lagMs: number;
    }
  | {
      readonly type: 'loop-failed';
      readonly loop: string;
      readonly code: ErrorCode | null;
      readonly message: string /** Told before, by the pass before. */;
      readonly again: boolean;
    }
  /** An HTTP request that was answered (0: its client hung up). `route` is a pattern, `method` "any" for an unknown one. */
  | {
      readonly type: 'request';
      readonly method: string;
      readonly route: string;
      readonly status: number;
      readonly durationMs: number;
    }
  /** The store's server throws keys away when it is full (`maxmemory-policy`). */
  | { readonly type: 'store-evicts'; readonly policy: string }
  | { readonly type: 'loop-recovered'; readonly loop: string }
  | { readonly type: 'image-pull'; readonly image: string; readonly progress: string }
  /** `capacity.max` sandboxes of this profile would need more memory than the engine's machine has. */
  | {
      readonly type: 'capacity-exceeds-engine';
      readonly maxSandboxes: number;
      readonly profile: string;
      readonly neededBytes: number;
      readonly engineBytes: number;
    }
  | { readonly type: 'engine-mismatch'; readonly expected: string; readonly seen: string }
  | { readonly type: 'leases-not-shared'; readonly note: string }
  | { readonly type: 'readiness'; readonly ready: boolean; readonly because: string | null }
  | {
      readonly type: 'audit';
      readonly action: string;
      readonly outcome: string;
      readonly key: string | null;
      readonly sandbox: SandboxId | null;
      readonly requestId: string;
    };

export type Emit = (event: BrokerEvent) => void;
