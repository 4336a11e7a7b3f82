import { BrokerError } from '../../src/domain/errors.ts';
import { Reconciler } from '../../src/lifecycle/reconciler.ts';
import { RemovalBackoff } from '../../src/lifecycle/removal-backoff.ts';
import { Sightings } from '../../src/lifecycle/sightings.ts';
import type { Client } from './judge.ts';
import { ID, LEASE_MS, OWNERS, type Replica, type Scene } from './scene.ts';

type Work = (scene: Scene, replica: Replica) => Promise<void>;

/** The handout is answered, and its client stays until it releases. */
const acquire: Work = async (scene, replica) => {
  const gaveUp = scene.patience.signal;
  const handout = await replica.acquire.run(scene.wanted, { gaveUp, slow: () => undefined });
  if (gaveUp.aborted) {
    if (!handout.brief) await replica.store.release(ID, handout.hold);
    return;
  }
  const client = await scene.scheduler.step('answer', () => scene.judge.answer(replica.index, handout));
  if (client !== null) await leave(scene, client);
};

/** The same by a replica that knows from the engine's events what runs, and whose events are late. */
const reacquire: Work = (scene, replica) => {
  scene.followsLate.add(replica.index);
  return acquire(scene, replica);
};

/** The client releases at any time from now on, or never. */
export async function leave(scene: Scene, client: Client): Promise<void> {
  const effect = async (): Promise<void> => {
    if (scene.judge.clients.delete(client)) await scene.client.release(ID, client.hold);
  };
  await scene.scheduler.step('release', effect, true);
}

/** Any record without a hold is idle here: the shortest idle time there is. */
const reap: Work = async (scene, replica) => {
  await scene.remember(replica.index);
  await replica.reaper.pass();
};

/** What admission does to make room. */
const evict: Work = async (_scene, replica) => {
  const seen = await replica.store.read(ID);
  if (seen.kind !== 'record' || seen.record.state !== 'ready') return;
  const claim = await replica.store.claim(ID, seen.record.fence, { kind: 'capacity' });
  if (claim !== 'refused') await replica.teardown.run(claim, 'capacity');
};

const destroy: Work = async (_scene, replica) => {
  await replica.destroy.run(ID);
};

/** One pass, in which the wait for what has no record is over already. */
const reconcile: Work = async (scene, replica) => {
  const store = new Proxy(replica.store, {
    get: (target, name) => (name === 'seesPeers' ? false : Reflect.get(target, name, target)),
  });
  await reconciler(scene, { ...replica, store }, LEASE_MS).pass();
};

/** Two passes, a lease apart for what they see, however little time is between them for everybody else. */
const sweep: Work = async (scene, replica) => {
  const sweeper = reconciler(scene, replica, 0);
  await sweeper.pass();
  await sweeper.pass();
};

/** With a memory of its own: what it has seen is its own doing. */
function reconciler(scene: Scene, replica: Replica, leaseMs: number): Reconciler {
  const { store, runtime, engine, census, endings, liveness, teardown, tracked, emit } = replica;
  const memory = { sightings: new Sightings(), backoff: new RemovalBackoff(LEASE_MS), leaseMs };
  return new Reconciler({
    store,
    runtime,
    engine,
    spares: replica.spares,
    census,
    endings,
    liveness,
    teardown,
    tracked,
    emit,
    clock: scene.clock,
    ...memory,
  });
}

const renew: Work = async (scene, replica) => {
  await scene.remember(replica.index);
  await replica.renewal.pass();
};

/** What tending the pool does to a spare that is of no use any more. */
const retire: Work = async (scene, replica) => {
  const [spare] = scene.engine.containers.filter(({ name }) => name.includes('-spare-'));
  if (spare !== undefined) await replica.teardown.removeSpare({ container: spare.id, name: spare.name });
};

const OPERATIONS = { retire, acquire, reacquire, reap, evict, destroy, reconcile, sweep, renew };
export type Operation = keyof typeof OPERATIONS;
export const OPERATION_NAMES = Object.keys(OPERATIONS) as Operation[];
/** Of these any two may meet, from any start; the others only where there are spares. */
export const COMMON = OPERATION_NAMES.filter((name) => name !== 'retire');

/** Begins an operation; an error that is none of the broker's is a violation. */
export async function begin(scene: Scene, operation: Operation, replica: Replica): Promise<void> {
  await scene.scheduler.begin(`${operation}@${OWNERS[replica.index]}`, replica.index, async () => {
    try {
      await OPERATIONS[operation](scene, replica);
    } catch (error) {
      if (error instanceof BrokerError && error.code !== 'internal_error') return;
      scene.judge.report(`${operation} failed with ${error instanceof Error ? error.stack : String(error)}`);
    }
  });
}
