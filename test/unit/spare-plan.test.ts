import { expect, test } from 'vitest';
import type { Container } from '../../src/domain/container.ts';
import { asContainerId, asEngineMark } from '../../src/domain/ids.ts';
import type { Spare } from '../../src/leases/lease-store.ts';
import { planSpares, type SpareKind, type SpareScene } from '../../src/lifecycle/spare-plan.ts';
import { tinyProfile } from '../support/profiles.ts';

const ENGINE = asEngineMark('engine');
const NOBODY = { profile: null, spec: null, owner: null, fence: null, userId: null, threadId: null };
const kind = (name: string, spares: number): SpareKind => ({
  profile: tinyProfile('image', { name, spares }),
  spec: 's',
});

function spare(name: string, createdAt = 0, changes: Partial<Spare> = {}): Spare {
  const about = { engine: ENGINE, url: 'http://x', profile: 'p', spec: 's', createdAt };
  return { container: asContainerId(name), name: `sandbox-spare-${name}`, ...about, ...changes };
}

function container(name: string, state: Container['state'] = 'running'): Container {
  const about = { labels: NOBODY, createdAt: null, url: null, state };
  return { id: asContainerId(name), name: `sandbox-spare-${name}`, role: { kind: 'spare' }, ...about };
}

function planOf(changes: Partial<SpareScene> & { readonly spares?: readonly Spare[]; readonly sandboxes?: number }) {
  const { spares = [], sandboxes = 0, ...scene } = changes;
  const { retire, forgotten, make, ready } = planSpares({
    ...{ engine: ENGINE, pool: { spares, sandboxes }, containers: spares.map(({ container: id }) => container(id)) },
    ...{ kinds: [kind('p', 2)], maxSandboxes: 0, isForgotten: () => false },
    ...scene,
  });
  return {
    retire: [...retire, ...forgotten].map((one) => String(one.container)),
    make: make.map(({ profile }) => profile.name),
    ready: Object.fromEntries(ready),
  };
}

test('[C-05] what is missing is made, what is there is kept', () => {
  expect(planOf({})).toEqual({ retire: [], make: ['p', 'p'], ready: { p: 0 } });
  expect(planOf({ spares: [spare('a')] })).toEqual({ retire: [], make: ['p'], ready: { p: 1 } });
  expect(planOf({ spares: [spare('a'), spare('b')] })).toEqual({ retire: [], make: [], ready: { p: 2 } });
});

test('[C-06] dead, vanished, of an older spec, of another engine, of a profile that wants none: retired and replaced', () => {
  const one = { kinds: [kind('p', 1)] };
  for (const containers of [[container('a', 'exited')], [], [container('a', 'paused')]]) {
    expect(planOf({ ...one, spares: [spare('a')], containers })).toMatchObject({ retire: ['a'], make: ['p'] });
  }
  for (const changes of [{ spec: 'older' }, { engine: asEngineMark('other') }, { profile: 'q' }]) {
    expect(planOf({ ...one, spares: [spare('a', 0, changes)] })).toMatchObject({ retire: ['a'], make: ['p'] });
  }
  expect(planOf({ kinds: [kind('p', 0)], spares: [spare('a')] })).toEqual({ retire: ['a'], make: [], ready: { p: 0 } });
});

test('[C-05] of too many the oldest go', () => {
  const spares = [spare('young', 3), spare('oldest', 1), spare('older', 2)];
  expect(planOf({ spares })).toEqual({ retire: ['oldest'], make: [], ready: { p: 2 } });
});

test('[C-05] sandboxes go before spares, and the profiles share what is left in their order', () => {
  const kinds = [kind('p', 2), kind('q', 2)];
  expect(planOf({ kinds, maxSandboxes: 5, sandboxes: 2 }).make).toEqual(['p', 'p', 'q']);
  expect(planOf({ kinds, maxSandboxes: 5, sandboxes: 5, spares: [spare('a')] })).toMatchObject({
    retire: ['a'],
    make: [],
  });
  expect(planOf({ kinds, maxSandboxes: 5, sandboxes: 9 }).make).toEqual([]);
});

test('[C-06] one that the pool does not know is left while it may be under way, and removed once it is forgotten', () => {
  const containers = [container('a', 'created'), container('b')];
  expect(planOf({ containers, kinds: [] }).retire).toEqual([]);
  expect(planOf({ containers, kinds: [], isForgotten: (id) => id === 'b' }).retire).toEqual(['b']);
});
