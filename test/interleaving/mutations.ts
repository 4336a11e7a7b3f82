import { asLife, asOwnerId, type ContainerId, UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { isAbsent, type LeaseRecord } from '../../src/domain/sandbox.ts';
import type { LeaseStore } from '../../src/leases/lease-store.ts';
import { newRecord } from '../../src/leases/transition.ts';
import type { ContainerRuntime, RemoveHow } from '../../src/runtime/container-runtime.ts';
import type { FakeEngine } from '../fakes/fake-engine.ts';
import { ID, IDENTITY, type Mutation, type Scene } from './scene.ts';

/** The target with some of its methods replaced. */
function override<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      const replaced = (methods as Record<string | symbol, unknown>)[name];
      if (replaced !== undefined) return replaced;
      const value: unknown = Reflect.get(object, name, object);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}

type Around = <T>(call: () => Promise<T>) => Promise<T>;

/** Every call of the store within `around`. */
const everyCall = (store: LeaseStore, around: Around): LeaseStore =>
  new Proxy(store, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => around(() => Reflect.apply(value, object, args));
    },
  });

function rewrite(scene: Scene, change: (record: LeaseRecord) => LeaseRecord): void {
  const record = scene.record();
  if (record === null) return;
  const changed = change(record);
  if (changed !== record) scene.database.put(changed);
}

const withoutUnknown = (record: LeaseRecord): LeaseRecord =>
  record.holds.has(UNKNOWN_HOLD)
    ? { ...record, holds: new Map([...record.holds].filter(([hold]) => hold !== UNKNOWN_HOLD)) }
    : record;

const withStore = (change: (store: LeaseStore, scene: Scene) => LeaseStore): Mutation => {
  return ({ store, runtime }, scene) => ({ runtime, store: change(store, scene) });
};
const withRuntime = (change: (runtime: ContainerRuntime, scene: Scene) => ContainerRuntime): Mutation => {
  return ({ store, runtime }, scene) => ({ store, runtime: change(runtime, scene) });
};

function removeById(engine: FakeEngine, container: ContainerId, how: RemoveHow): 'removed' | 'left' {
  if (how === 'onlyIfStopped' && engine.find(container)?.state === 'running') return 'left';
  engine.vanish(container);
  return 'removed';
}

/** Each takes one rule of the protocol away. */
export const MUTATIONS = {
  'a removal is confirmed after the condemning': withStore((store) =>
    override(store, { confirm: async (request) => ({ ...(await store.confirm(request)), answer: 'mine' as const }) }),
  ),

  'a container is condemned before it is removed': withRuntime((runtime, { engine }) =>
    override(runtime, {
      condemn: async () => true,
      remove: async (_id, container, how) => removeById(engine, container, how),
    }),
  ),

  'a condemned container is not handed out': withRuntime((runtime) =>
    override(runtime, {
      look: async (target) => {
        const seen = await runtime.look(target);
        if (seen.kind !== 'running' || seen.container.role.kind !== 'condemned') return seen;
        return { kind: 'running', container: { ...seen.container, role: { kind: 'sandbox', id: ID } } };
      },
    }),
  ),

  'a missing record refuses an activation': withStore((store, scene) =>
    override(store, {
      activate: async (request) => {
        if (isAbsent(scene.record(), scene.database.now())) {
          const { profile, userId, threadId } = IDENTITY;
          const known = { state: 'starting', fence: request.fence, profile, userId, threadId } as const;
          scene.database.put(newRecord(scene.database.moment(ID, asOwnerId(store.owner)), known));
        }
        return store.activate(request);
      },
    }),
  ),

  'what is held is not claimed': withStore((store, scene) =>
    override(store, {
      claim: async (id, fence, condition) => {
        rewrite(scene, (record) => (record.state === 'ready' ? { ...record, holds: new Map() } : record));
        return store.claim(id, fence, condition);
      },
    }),
  ),

  'a container that was found gets an unknown hold': withStore((store, scene) =>
    everyCall(store, async (call) => {
      const reply = await call();
      rewrite(scene, withoutUnknown);
      return reply;
    }),
  ),

  'a record of an earlier life is not trusted': withStore((store, scene) =>
    everyCall(store, (call) => {
      const life = scene.database.life();
      rewrite(scene, (record) => (record.life === life ? record : { ...record, life }));
      return call();
    }),
  ),

  'a record that nobody verified is not trusted': withStore((store, scene) =>
    everyCall(store, async (call) => {
      rewrite(scene, (record) =>
        record.verified ? record : { ...record, life: scene.database.life(), verified: true },
      );
      const reply = await call();
      rewrite(scene, (record) => (record.verified ? record : { ...record, verified: true }));
      return reply;
    }),
  ),

  // Each of the two is enough by itself: a remover that was frozen finds nothing under the condemned name.
  'a name is given back only in its life, and removals go by the condemned name': ({ store, runtime }, { engine }) => {
    const life = asLife('any');
    const inAnyLife = <T>(reply: T): T => (typeof reply === 'object' && reply !== null ? { ...reply, life } : reply);
    return {
      store: override(store, {
        take: async (request) => inAnyLife(await store.take(request)),
        restart: async (id, container, why) => inAnyLife(await store.restart(id, container, why)),
        residue: async (id, fence, container) => inAnyLife(await store.residue(id, fence, container)),
        claim: async (id, fence, condition) => inAnyLife(await store.claim(id, fence, condition)),
        condemnByIntent: async (id, container) => inAnyLife(await store.condemnByIntent(id, container)),
        confirm: async (request) => inAnyLife(await store.confirm(request)),
      }),
      runtime: override(runtime, { remove: async (_id, container, how) => removeById(engine, container, how) }),
    };
  },

  'a tombstone keeps off whoever remembers the sandbox': withStore((store, scene) =>
    override(store, {
      drop: async (id, fence, previous) => {
        const reply = await store.drop(id, fence, previous);
        if (reply === 'dropped') scene.database.remove(id);
        return reply;
      },
    }),
  ),

  'the container of a removal under way becomes residue': withStore((store, scene) =>
    override(store, {
      take: async (request) => {
        const reply = await store.take(request);
        if (reply.kind !== 'starting' || reply.residue === null) return reply;
        const { fence, record } = reply;
        const holds = new Map([[fence, record.expiresAt + scene.database.policy.holdTtlMs]]);
        const ready: LeaseRecord = { ...record, state: 'ready', holds };
        scene.database.put(ready);
        return { kind: 'ready', record: ready, hold: fence, heldBefore: false };
      },
    }),
  ),

  'a start that its owner remembers ready is written back': withStore((store) =>
    override(store, { renew: (leases) => store.renew(leases.map(({ id, fence }) => ({ id, fence }))) }),
  ),

  'a container in use gets its name back': withRuntime((runtime) =>
    override(runtime, { giveBack: async () => undefined }),
  ),
} satisfies Record<string, Mutation>;

export type Rule = keyof typeof MUTATIONS;
