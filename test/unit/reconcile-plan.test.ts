import { expect, test } from 'vitest';
import type { Container, ContainerState } from '../../src/domain/container.ts';
import {
  asContainerId,
  asEngineMark,
  asOwnerId,
  asSandboxId,
  type ContainerId,
  type Fence,
} from '../../src/domain/ids.ts';
import type { ContainerRole } from '../../src/domain/names.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import type { Snapshot } from '../../src/leases/lease-store.ts';
import {
  partsOf,
  plan,
  presentIn,
  type ReconcileStep,
  type Scene,
  suspects,
} from '../../src/lifecycle/reconcile-plan.ts';
import { Sightings, type Suspicion } from '../../src/lifecycle/sightings.ts';
import { C1, C2, ENGINE, ID } from '../support/lease-harness.ts';

const ME = asOwnerId('me');
const LEASE_MS = 30_000;
const NOW = 1_000_000;

const SANDBOX: ContainerRole = { kind: 'sandbox', id: ID };
const CONDEMNED: ContainerRole = { kind: 'condemned', id: ID };

function container(state: ContainerState, role: ContainerRole = SANDBOX, id: ContainerId = C1): Container {
  const labels = { profile: null, spec: null, owner: null, fence: null, userId: null, threadId: null };
  return { id, name: 'name', role, state, labels, createdAt: null, url: null };
}

function record(changes: Partial<LeaseRecord>): Snapshot {
  const base: Partial<LeaseRecord> = {
    ...{ id: ID, state: 'ready', owner: asOwnerId('peer'), fence: 5 as Fence, container: C1, engine: ENGINE },
    ...{ expiresAt: NOW + 1, verified: true },
  };
  return { kind: 'record', id: ID, record: { ...base, ...changes } as LeaseRecord, now: NOW };
}

interface Shown {
  readonly containers?: readonly Container[];
  readonly snapshots?: readonly Snapshot[];
  readonly seesPeers?: boolean;
}

function sceneOf({ containers = [], snapshots = [], seesPeers = true }: Shown): Scene {
  return { me: ME, engine: ENGINE, containers, snapshots, seesPeers, leaseMs: LEASE_MS };
}

const suspicionOf = (shown: Shown): Suspicion | undefined => suspects(sceneOf(shown)).get(C1);

/** What is planned at once, and when the same was seen a lease earlier. */
function planned(shown: Shown): { readonly now: ReconcileStep[]; readonly later: ReconcileStep[] } {
  const scene = sceneOf(shown);
  const sightings = new Sightings();
  sightings.note(suspects(scene), 0);
  const now = plan(scene, sightings, 0);
  sightings.note(suspects(scene), LEASE_MS - 1);
  expect(plan(scene, sightings, LEASE_MS - 1)).toEqual(now);
  sightings.note(suspects(scene), LEASE_MS);
  return { now, later: plan(scene, sightings, LEASE_MS) };
}

const expired = { expiresAt: NOW } as const;
const DEAD = ['created', 'exited', 'dead'] as const;
const ALIVE = ['running', 'paused', 'restarting', 'removing'] as const;

test.for(ALIVE)('[T-09] without a record what is %s is adopted after a lease; without peers at once', (state) => {
  const found = container(state);
  const adopt = { kind: 'adopt', id: ID, container: found };
  expect(planned({ containers: [found] })).toEqual({ now: [], later: [adopt] });
  expect(planned({ containers: [found], seesPeers: false }).now).toEqual([adopt]);
});

test.for(DEAD)('without a record what is %s is removed after a lease, with or without peers', (state) => {
  const stray = { kind: 'stray', id: ID, container: C1 };
  for (const seesPeers of [true, false]) {
    expect(planned({ containers: [container(state)], seesPeers })).toEqual({ now: [], later: [stray] });
  }
});

test('[L-15] beside a tombstone what runs is left alone, what is dead is removed; an old one counts as none', () => {
  const stone = record({ state: 'gone', container: null });
  expect(planned({ containers: [container('running')], snapshots: [stone] })).toEqual({ now: [], later: [] });
  expect(suspicionOf({ containers: [container('exited')], snapshots: [stone] })).toBe('dead');
  const old = record({ state: 'gone', container: null, ...expired });
  expect(suspicionOf({ containers: [container('running')], snapshots: [old] })).toBe('unowned');
});

test('[T-06] what runs under a start: left alone while that is live, adopted a lease after it expired', () => {
  const found = container('running');
  const live = record({ state: 'starting', container: null });
  expect(planned({ containers: [found], snapshots: [live] })).toEqual({ now: [], later: [] });
  const late = record({ state: 'starting', container: null, ...expired });
  const adopt = { kind: 'adopt', id: ID, container: found };
  expect(planned({ containers: [found], snapshots: [late] })).toEqual({ now: [], later: [adopt] });
});

test('[T-10] an expired start with nothing running is finished at once, naming what holds its name', () => {
  const late = record({ state: 'starting', container: C2, ...expired });
  const finish = { kind: 'finish', id: ID, fence: 5 };
  expect(planned({ snapshots: [late] }).now).toEqual([{ ...finish, container: null }]);
  for (const state of DEAD) {
    const shown = { containers: [container(state)], snapshots: [late] };
    expect(planned(shown)).toEqual({ now: [{ ...finish, container: C1 }], later: [{ ...finish, container: C1 }] });
  }
});

test('[T-10] an expired removal is finished, a live one is left to its remover, with its condemned container', () => {
  const containers = [container('running', CONDEMNED)];
  const live = record({ state: 'destroying' });
  expect(planned({ containers, snapshots: [live] })).toEqual({ now: [], later: [] });
  const finish = { kind: 'finish', id: ID, fence: 5, container: C1 };
  const late = record({ state: 'destroying', ...expired });
  expect(planned({ containers, snapshots: [late] })).toEqual({ now: [finish], later: [finish] });
});

test('[T-07] an expired ready record is adopted, also where its container is another engine’s or not named', () => {
  const adopt = { kind: 'adopt', id: ID, container: null };
  const containers = [container('running')];
  expect(planned({ containers, snapshots: [record({})] }).now).toEqual([]);
  expect(planned({ containers, snapshots: [record(expired)] }).now).toEqual([adopt]);
  const elsewhere = { engine: asEngineMark('another') };
  expect(planned({ snapshots: [record({ ...elsewhere, ...expired })] }).now).toEqual([adopt]);
  expect(planned({ snapshots: [record({ ...elsewhere, owner: ME })] }).now).toEqual([]);
  expect(planned({ snapshots: [record({ container: null, ...expired })] }).now).toEqual([adopt]);
});

test('[L-30] a ready record whose container has ended: told if it is mine or expired, not of a live peer', () => {
  const end = { kind: 'end', id: ID, container: C1 };
  for (const containers of [[], ...DEAD.map((state) => [container(state)])]) {
    expect(planned({ containers, snapshots: [record({})] }).now).toEqual([]);
    expect(planned({ containers, snapshots: [record({ owner: ME })] }).now).toEqual([end]);
    expect(planned({ containers, snapshots: [record(expired)] }).now).toEqual([end]);
  }
  const paused = { containers: [container('paused')], snapshots: [record({ owner: ME })] };
  expect(planned(paused).now).toEqual([]);
});

test('[T-17] beside a verified record that names another one a container is a stray, beside an unverified one not', () => {
  const containers = [container('running'), container('running', SANDBOX, C2)];
  const stray = { kind: 'stray', id: ID, container: C1 };
  expect(planned({ containers, snapshots: [record({ container: C2 })] })).toEqual({ now: [], later: [stray] });
  const unverified = record({ container: C2, verified: false });
  expect(planned({ containers, snapshots: [unverified] })).toEqual({ now: [], later: [] });
});

test('[T-18] condemned: healed if verified and named, unsettled if named only, else a stray', () => {
  const containers = [container('running', CONDEMNED)];
  const later = (snapshots: readonly Snapshot[]) => {
    const { now, later } = planned({ containers, snapshots });
    expect(now).toEqual([]);
    return later;
  };
  expect(later([record({})])).toEqual([{ kind: 'heal', id: ID, container: C1 }]);
  expect(later([record({ verified: false })])).toEqual([{ kind: 'unsettled', id: ID, fence: 5, container: C1 }]);
  const stray = { kind: 'stray', id: ID, container: C1 };
  expect(later([])).toEqual([stray]);
  expect(later([record({ state: 'gone', container: null })])).toEqual([stray]);
  const another = planned({ containers, snapshots: [record({ container: C2 })] });
  expect(another.later).toEqual([stray]);
  expect(later([record({ state: 'starting', container: null })])).toEqual([]);
});

test('[L-28] nothing is concluded from a record that cannot be read', () => {
  const snapshots: Snapshot[] = [{ kind: 'unreadable', id: ID, reason: 'x', now: NOW }];
  for (const containers of [[container('running')], [container('exited')], [container('running', CONDEMNED)]]) {
    for (const seesPeers of [true, false]) {
      expect(planned({ containers, snapshots, seesPeers })).toEqual({ now: [], later: [] });
    }
  }
});

test('[R-22] a spare is nobody’s concern, a foreign name is reported', () => {
  const foreign = container('running', { kind: 'foreign' }, C2);
  const containers = [container('running', { kind: 'spare' }), foreign];
  expect(suspects(sceneOf({ containers })).size).toBe(0);
  expect(planned({ containers }).now).toEqual([{ kind: 'foreign', container: foreign }]);
});

test('what is planned in parts is what is planned at once, also for a container that has lost its name', () => {
  const idOf = (n: number) => asSandboxId((n * 0x1234567).toString(16).padStart(8, '0').slice(-8) + 'a'.repeat(24));
  const idsOfContainers = (n: number): ContainerId => asContainerId(n.toString(16).padStart(64, '0'));
  const numbers = Array.from({ length: 300 }, (_, n) => n);
  const roles = (n: number): ContainerRole =>
    n % 7 === 0
      ? { kind: 'foreign' }
      : n % 5 === 0
        ? { kind: 'spare' }
        : { kind: n % 3 === 0 ? 'condemned' : 'sandbox', id: idOf(n) };
  const containers = numbers.map((n) => container(n % 4 === 0 ? 'exited' : 'running', roles(n), idsOfContainers(n)));
  const snapshots = numbers
    .filter((n) => n % 2 === 0)
    .map((n): Snapshot => {
      const seen = record({ id: idOf(n), container: idsOfContainers(n), expiresAt: n % 6 === 0 ? NOW : NOW + 1 });
      return { ...seen, id: idOf(n) };
    });
  const scene = sceneOf({ containers, snapshots });
  const parts = partsOf(scene, 50);
  expect(parts.length).toBeGreaterThan(5);
  const sightings = new Sightings();
  for (const at of [0, LEASE_MS]) {
    const together = suspects(scene);
    expect(new Map(parts.flatMap((part) => [...suspects(part)]))).toEqual(together);
    sightings.note(together, at);
  }
  const inParts = parts.flatMap((part) => plan(part, sightings, LEASE_MS, presentIn(scene)));
  const atOnce = plan(scene, sightings, LEASE_MS);
  const sorted = (steps: ReconcileStep[]): string[] => steps.map((step) => JSON.stringify(step)).sort();
  expect(sorted(inParts)).toEqual(sorted(atOnce));
  expect(new Set(atOnce.map(({ kind }) => kind)).size).toBeGreaterThan(3);
  expect(partsOf(scene, 1_000)).toEqual([scene]);
});
