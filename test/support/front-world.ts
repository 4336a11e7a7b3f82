import type { SandboxService } from '../../src/service/api.ts';
import { SandboxHistory } from '../../src/service/history.ts';
import { Readiness } from '../../src/service/readiness.ts';
import { Sandboxes } from '../../src/service/sandboxes.ts';
import { DEPLOYMENT, IDLE_MS, World } from './world.ts';

const MAX_SANDBOXES = 2;
const STORE_CALLS = ['take', 'activate', 'read', 'readMany', 'keepalive', 'release', 'page', 'pool'] as const;

export type FrontWorld = Awaited<ReturnType<typeof frontWorld>>;

/** One replica's whole service, ready, over the store in memory and a fake engine, for what comes in by HTTP. */
export async function frontWorld() {
  const world = new World({ maxSandboxes: MAX_SANDBOXES, maxPerUser: 1 });
  const replica = world.replica('host:owner', { peers: false });
  const { store, runtime, storePoints, tasks, handouts, destroy, engine, images, admission, events, reconciler } =
    replica;
  const emit = (): void => undefined;
  const readiness = new Readiness({ store, engine, images, emit });
  await readiness.noting('reconcile', reconciler.pass());
  await readiness.noting('images', images.pass());
  const service = new Sandboxes({
    ...{ store, handouts, destroy, tasks, emit, clock: world.clock, idleMs: IDLE_MS, destroyWaitMs: 10_000 },
    history: new SandboxHistory({ store, runtime }),
    readiness,
    waiting: () => admission.waiting,
    about: {
      ...{ owner: store.owner, deployment: DEPLOYMENT, version: '0.0.0', store: 'memory' as const },
      ...{ maxSandboxes: MAX_SANDBOXES, spares: new Map<string, number>() },
    },
  });
  return {
    service: service as SandboxService,
    /** From here on the store answers nothing else. */
    fail: (error: () => Error): void => {
      for (const method of STORE_CALLS) storePoints.break(method, error);
    },
    engine: world.engine,
    /** Of all records there are, tombstones included. */
    ids: (): string[] => [...world.database.entries().keys()],
    /** What the replica has told so far. */
    forgetEvents: (): void => void events.splice(0),
  };
}
