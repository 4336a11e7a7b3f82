import type { ContainerId } from '../../src/domain/ids.ts';
import { sandboxName } from '../../src/domain/names.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import { short } from './judge.ts';
import { HOLD_MS, ID, LEASE_MS, PREFIX, type Scene } from './scene.ts';

const MOST_PASSES = 12;
const NEVER = new AbortController().signal;

/**
 * What remains once everything has ended: renewal and reconciliation go on for some leases, first with the clients
 * there, then without; then everything is idle and goes. Nothing may be left over. Reports to the judge.
 */
export async function quiet(scene: Scene): Promise<void> {
  const { scheduler, judge } = scene;
  scheduler.free = true;
  await passes(scene, 'with its clients');
  for (const { hold } of judge.clients) await scene.client.release(ID, hold);
  judge.clients.clear();
  scene.passLease(HOLD_MS);
  await passes(scene, 'without clients');
  for (const replica of survivors(scene)) await replica.reaper.pass();
  await scheduler.settled();
  await passes(scene, 'when all was idle');
  if (scene.engine.containers.length > 0) judge.report(`left over when all was idle: ${left(scene)}`);
}

const survivors = ({ replicas, crashed }: Scene) => replicas.filter(({ index }) => !crashed.has(index));

async function passes(scene: Scene, when: string): Promise<void> {
  let wrong: string | null = null;
  for (let pass = 0; pass < MOST_PASSES && (pass === 0 || wrong !== null); pass += 1) {
    scene.passLease(0.6 * LEASE_MS);
    await scene.judge.keepalive();
    for (const replica of survivors(scene)) {
      await replica.renewal.pass();
      await replica.reconciler.pass();
      if (scene.wanted.profile.spares > 0) await replica.spares.pass(NEVER); // none is wanted any more
    }
    await scene.scheduler.settled();
    wrong = amiss(scene);
  }
  if (wrong !== null) scene.judge.report(`not settled ${when}: ${wrong} (${left(scene)})`);
}

/** A record that nobody verified since the store came back may have lost sight of a container: it waits. */
function mayStay(container: ContainerId, record: LeaseRecord | null): boolean {
  return record?.state === 'ready' && record.container !== container && !record.verified;
}

/** What should not be so once all is quiet; null: nothing. */
function amiss(scene: Scene): string | null {
  const record = scene.record();
  const { containers } = scene.engine;
  const name = sandboxName(PREFIX, ID);
  const condemned = containers.find((container) => container.name !== name && !mayStay(container.id, record));
  if (condemned !== undefined) return `${short(condemned.id)} is still condemned`;
  if (record?.state === 'starting' || record?.state === 'destroying') return `the record is ${record.state}`;
  const [first, second] = containers.filter((container) => container.name === name);
  if (second !== undefined) return 'two containers have one name';
  for (const { state, id } of first === undefined ? [] : [first]) {
    if (state !== 'running') return `${short(id)} is ${state}`;
    if (record?.state !== 'ready' || record.container !== id) return `${short(id)} runs and no record names it`;
  }
  if (record?.state === 'ready' && first === undefined) return 'a ready record names no container';
  const owners = survivors(scene).filter(({ tracked }) => tracked.size > 0);
  if (record?.state !== 'ready' && owners.length > 0) return 'a lease is remembered of which there is no record';
  if (record?.state === 'ready' && owners.length !== 1) return `${owners.length} replicas remember its lease`;
  return null;
}

function left(scene: Scene): string {
  const record = scene.record();
  const containers = scene.engine.containers.map(({ id, name, state }) => `${short(id)} ${name.slice(0, 17)} ${state}`);
  return `record ${record === null ? 'none' : `${record.state} ${record.container === null ? '' : short(record.container)}`}; ${containers.join(', ') || 'no container'}`;
}
