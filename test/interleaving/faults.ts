import { ID, LEASE_MS, type Scene } from './scene.ts';

/** What may happen to a scene between two steps. A run has at most one `disaster`, one `expiry` and one `crash`. */
export interface Fault {
  /** As it stands in a schedule. */
  readonly token: string;
  readonly kind: 'disaster' | 'expiry' | 'crash' | 'leaving';
  readonly words: string;
  readonly happen: (scene: Scene) => void | Promise<void>;
}

/** Every fault that would change something here. */
export function faultsOf(scene: Scene): Fault[] {
  const { database, scheduler, judge } = scene;
  const record = scene.record();
  const faults: Fault[] = [];
  if (record !== null && record.state !== 'gone' && record.expiresAt > database.now()) faults.push(EXPIRY);
  if (record !== null) faults.push(LOSS, RECORD_LOST);
  if (record?.life === database.life()) faults.push(NEW_LIFE);
  scene.versions.forEach((version, index) => {
    if (version !== record && scene.versions.indexOf(version) === index) faults.push(olderCopy(index));
  });
  for (const replica of [0, 1]) {
    const its = scheduler.threads.filter((thread) => thread.replica === replica);
    const begun = its.some(({ steps }) => steps > 0);
    if (begun && its.some(({ stop }) => stop !== null)) faults.push(crash(replica));
  }
  if (record?.state === 'ready' && record.life === database.life() && record.holds.size > 0 && !judge.answering) {
    faults.push(RUN_OUT);
    if (judge.clients.size > 0) faults.push(VANISH);
  }
  const reasserting = scheduler.threads.some(({ stop }) => stop?.label === 'reassert');
  if (record?.state === 'gone' && record.expiresAt > database.now() && !reasserting) faults.push(TOMBSTONE_GOES);
  return faults;
}

const EXPIRY: Fault = {
  token: 'expiry',
  kind: 'expiry',
  words: 'the lease expires',
  happen: ({ database }) => {
    const entry = database.entry(ID);
    if (entry !== null && !('kind' in entry)) database.put({ ...entry, expiresAt: database.now() });
  },
};

const LOSS: Fault = {
  token: 'loss',
  kind: 'disaster',
  words: 'the store loses everything',
  happen: ({ database, judge }) => {
    database.remove(ID);
    database.beginLife();
    judge.storeFailed = true;
  },
};

const RECORD_LOST: Fault = {
  token: 'lost',
  kind: 'disaster',
  words: 'the store loses the record alone, and its life goes on',
  happen: ({ database, judge }) => {
    database.remove(ID);
    judge.storeFailed = true;
  },
};

const NEW_LIFE: Fault = {
  token: 'life',
  kind: 'disaster',
  words: 'a new life of the store begins',
  happen: ({ database }) => database.beginLife(),
};

function olderCopy(version: number): Fault {
  return {
    token: `copy${version}`,
    kind: 'disaster',
    words: `the store comes back as it was at version ${version}`,
    happen: ({ database, versions, judge }) => {
      const record = versions[version] ?? null;
      if (record === null) database.remove(ID);
      else database.put(record);
      database.beginLife();
      judge.storeFailed = true;
    },
  };
}

function crash(replica: number): Fault {
  return {
    token: `crash${replica}`,
    kind: 'crash',
    words: `replica ${'ab'[replica]} crashes`,
    happen: ({ scheduler, crashed }) => {
      scheduler.crash(replica);
      crashed.add(replica);
    },
  };
}

/** Who is there keeps its hold; all others have run out. An acquire takes less time than a hold lasts. */
const RUN_OUT: Fault = {
  token: 'holds',
  kind: 'leaving',
  words: 'every hold without a client runs out',
  happen: runOut,
};

const VANISH: Fault = {
  token: 'vanish',
  kind: 'leaving',
  words: 'the clients vanish, and their holds run out',
  happen: async (scene) => {
    scene.judge.clients.clear();
    await runOut(scene);
  },
};

const TOMBSTONE_GOES: Fault = {
  token: 'tombstone',
  kind: 'leaving',
  words: 'a lease goes by, the tombstone with it',
  happen: (scene) => {
    scene.passLease(LEASE_MS);
    scene.scheduler.wake();
  },
};

async function runOut(scene: Scene): Promise<void> {
  const { database, judge } = scene;
  await judge.keepalive();
  const record = scene.record();
  if (record?.state !== 'ready') return;
  const using = new Set(
    [...judge.clients].filter(({ container }) => container === record.container).map(({ hold }) => hold),
  );
  const holds = new Map([...record.holds].filter(([hold]) => using.has(hold)));
  database.put({ ...record, holds });
}
