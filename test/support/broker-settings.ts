/** A configuration, or a part of one. */
export type Tree = { readonly [key: string]: unknown };

const PROFILE: Tree = { pull: 'never', readiness: { timeout: '20s' }, resources: { memory: '128MiB' } };

/** Settings under which everything happens soon, and no call of a loaded machine's engine is cut short. */
export function brokerSettings(deployment: string, overrides: Tree = {}): Tree {
  const settings = {
    deployment,
    server: { port: 0 },
    store: { type: 'memory', commandTimeout: '500ms' },
    lease: { duration: '12s', renewInterval: '1s' },
    holds: { ttl: '1m' },
    idle: { timeout: '0s', checkInterval: '200ms' },
    reconcile: { interval: '500ms' },
    acquire: { wait: '20s', startTimeout: '20s' },
    capacity: { waitTimeout: '0s' },
    runtime: { docker: { namePrefix: deployment, timeout: '10s', stopGrace: '500ms' } },
    shutdown: { drainTimeout: '10s' },
    profiles: { default: {} },
    log: { level: 'debug' },
  };
  const merged = merge(settings, overrides);
  const profiles = Object.entries(merged.profiles as Readonly<Record<string, Tree>>);
  return { ...merged, profiles: Object.fromEntries(profiles.map(([name, own]) => [name, merge(PROFILE, own)])) };
}

function merge(base: Tree, changes: Tree): Tree {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(changes)) {
    const below = result[key];
    result[key] = isTree(below) && isTree(value) ? merge(below, value) : value;
  }
  return result;
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value);
