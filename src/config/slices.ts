import type { BrokerConfig } from './broker-config.ts';

/** What the lifecycle is told. */
export function lifecycleSettings({ lease, holds, idle, reconcile, acquire, capacity }: BrokerConfig) {
  return {
    leaseMs: lease.durationMs,
    holdTtlMs: holds.ttlMs,
    idleMs: idle.timeoutMs,
    reconcileIntervalMs: reconcile.intervalMs,
    startTimeoutMs: acquire.startTimeoutMs,
    parallelStarts: acquire.parallelStarts,
    capacity,
  };
}

/** What the lease store is told. */
export function storeConfig({ deployment, store, lease, holds, capacity }: BrokerConfig) {
  const policy = {
    leaseMs: lease.durationMs,
    holdTtlMs: holds.ttlMs,
    maxSandboxes: capacity.max,
    maxPerUser: capacity.perUser,
  };
  return { ...store, deployment, policy };
}

/** What the container runtime is told. */
export function dockerConfig({ deployment, runtime: { docker } }: BrokerConfig) {
  const { engine, ...rest } = docker;
  return { ...rest, deployment, connection: engine };
}
