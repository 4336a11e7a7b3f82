import { expect, test } from 'vitest';
import { BrokerError, type ErrorCode } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import { asContainerId, asOwnerId, type Fence } from '../../src/domain/ids.ts';
import type { HistoryLine } from '../../src/leases/history-store.ts';
import { MemoryHistory } from '../../src/leases/memory-history.ts';
import { History } from '../../src/lifecycle/history.ts';
import { SandboxHistory } from '../../src/service/history.ts';
import { ID } from '../support/lease-harness.ts';
import { handedOut, World } from '../support/world.ts';

const OWNER = asOwnerId('host:a');
const C1 = asContainerId('c1'.repeat(32));

function openHistory() {
  const written: HistoryLine[][] = [];
  const events: BrokerEvent[] = [];
  let failure: Error | null = null;
  const store = {
    append: async (lines: readonly HistoryLine[]) => {
      if (failure !== null) throw failure;
      written.push([...lines]);
    },
  };
  const clock = { wall: () => 1_000 };
  const history = new History({ store, owner: OWNER, clock, emit: (event) => void events.push(event) });
  const fail = (error: Error | null): void => {
    failure = error;
  };
  return { history, written, events, fail };
}

const audit = (action: string, outcome: string, sandbox: typeof ID | null = ID): BrokerEvent => ({
  ...{ type: 'audit', action, outcome, key: 'gateway', sandbox, requestId: 'r' },
});

const refused = (code: ErrorCode): BrokerEvent => ({
  ...{ type: 'acquire-failed', sandbox: ID, code, message: 'm', durationMs: 1 },
});

test('what happens to a sandbox is told in words of its own: by whom, why, with which key', async () => {
  const { history, written } = openHistory();
  const about = { sandbox: ID, fence: 1 as Fence, container: C1 };
  const told: readonly [BrokerEvent, string | null, (string | null)?][] = [
    [{ type: 'started', ...about, createMs: 1, startMs: 1, readyMs: 1 }, 'started'],
    [{ type: 'start-failed', ...about, code: 'sandbox_not_ready', message: 'm' }, 'start-failed', 'sandbox_not_ready'],
    [{ type: 'adopted', ...about }, 'adopted'],
    [{ type: 'lease-lost', ...about }, 'lost'],
    [{ type: 'lease-reasserted', ...about }, 'reasserted'],
    [{ type: 'ended', ...about, reason: 'out of memory', exitCode: 137 }, 'ended', 'out of memory (exit code 137)'],
    [{ type: 'ended', ...about, reason: 'it is gone', exitCode: null }, 'ended', 'it is gone'],
    [{ type: 'claimed', ...about, reason: 'idle' }, 'claimed', 'idle'],
    [{ type: 'removed', ...about, reason: 'idle', durationMs: 1 }, 'removed', 'idle'],
    [{ type: 'removal-stopped', ...about, reason: 'idle', because: 'named' }, 'kept', 'idle: named'],
    [{ type: 'removal-failed', ...about, reason: 'explicit', message: 'm' }, 'removal-failed', 'explicit'],
    [audit('acquire', 'reused'), 'held', 'reused'],
    [refused('capacity_exhausted'), 'refused', 'capacity_exhausted'],
    [audit('release', 'released'), 'released'],
    [audit('destroy', 'gone'), 'destroy-asked'],
    [audit('destroy', 'removing'), 'destroy-asked'],
    [audit('destroy', 'runtime_unavailable'), 'destroy-asked', 'runtime_unavailable'],
    [audit('release', 'sandbox_not_found'), null],
    [refused('store_unavailable'), null],
    [refused('shutting_down'), null],
    [audit('acquire', 'capacity_exhausted'), null],
    [audit('acquire', 'starting'), null],
    [audit('acquire', 'unauthorized', null), null],
    [audit('read', 'ok'), null],
    [{ type: 'removed', ...about, reason: 'spare', durationMs: 1 }, null],
    [{ type: 'renewal-pass', renewed: 1, durationMs: 1 }, null],
  ];
  for (const [event] of told) history.note(event);
  await history.flush();
  const lines = written.flat();
  const expected = told.filter(([, what]) => what !== null);
  expect(lines.map(({ entry }) => [entry.event, entry.reason])).toEqual(
    expected.map(([, what, why = null]) => [what, why]),
  );
  for (const { id, entry } of lines) expect([id, entry.at, entry.owner]).toEqual([ID, 1_000, OWNER]);
  const [first] = lines;
  expect(first?.entry).toMatchObject({ container: C1, key: null });
  expect(lines.find(({ entry }) => entry.event === 'held')?.entry).toMatchObject({ container: null, key: 'gateway' });
});

test('lines are written in one batch, and nothing is asked of the store without any', async () => {
  const { history, written } = openHistory();
  await history.flush();
  for (let n = 0; n < 10; n += 1) history.note(audit('release', 'released'));
  await history.flush();
  await history.flush();
  expect(written.map((lines) => lines.length)).toEqual([10]);
});

test('while the store is away lines wait, in their order; the oldest are given up, and that is told', async () => {
  const { history, written, events, fail } = openHistory();
  fail(new BrokerError('store_unavailable', 'no store'));
  const about = { sandbox: ID, fence: 1 as Fence, container: C1 };
  history.note({ type: 'claimed', ...about, reason: 'idle' });
  await expect(history.flush()).rejects.toMatchObject({ code: 'store_unavailable' });
  for (let n = 0; n < 5_000; n += 1) history.note(audit('release', 'released'));
  fail(null);
  await history.flush();
  expect(written[0]).toHaveLength(5_000);
  expect(written[0]?.some(({ entry }) => entry.event === 'claimed')).toBe(false);
  expect(events).toEqual([{ type: 'history-dropped', lines: 1 }]);
  await history.flush();
  expect(events).toHaveLength(1);
});

test('lines that are given up while a write is under way are counted too', async () => {
  const events: BrokerEvent[] = [];
  const asked = Promise.withResolvers<void>();
  const answers = [() => asked.promise, async () => undefined];
  const store = { append: () => answers.shift()?.() ?? Promise.resolve() };
  const clock = { wall: () => 1_000 };
  const history = new History({ store, owner: OWNER, clock, emit: (event) => void events.push(event) });
  for (let n = 0; n < 10; n += 1) history.note(audit('release', 'released'));
  const flush = history.flush();
  for (let n = 0; n < 4_997; n += 1) history.note(audit('release', 'released'));
  asked.reject(new BrokerError('store_unavailable', 'no store'));
  await expect(flush).rejects.toMatchObject({ code: 'store_unavailable' });
  await history.flush();
  expect(events).toEqual([{ type: 'history-dropped', lines: 7 }]);
});

test('logs: of a container that runs, of one that ended, of one that is gone; else nothing is known', async () => {
  const world = new World();
  const a = world.replica('a');
  const history = new SandboxHistory({ store: a.store, runtime: a.runtime });
  const id = world.idOf('u');
  await expect(history.logs(id)).rejects.toMatchObject({ code: 'sandbox_not_found' });
  handedOut(await a.take('u'));
  const [container] = world.engine.containers;
  expect(await history.logs(id)).toMatchObject({
    running: true,
    container: container?.id,
    reason: null,
    exitCode: null,
  });
  world.engine.kill(container!.id, { exitCode: 3, reason: 'exited with code 3', logTail: 'last words' });
  expect(await history.logs(id)).toMatchObject({ running: false, container: container?.id, exitCode: 3 });
  await a.reconciler.pass();
  world.engine.vanish(container!.id);
  expect(await history.logs(id)).toMatchObject({
    ...{ running: false, container: null, exitCode: 3, reason: 'exited with code 3', logTail: 'last words' },
  });
});

test('events: what was told; nothing yet of a sandbox that is there; else nothing is known', async () => {
  const world = new World();
  const a = world.replica('a');
  const history = new SandboxHistory({ store: a.store, runtime: a.runtime });
  await expect(history.events(world.idOf('u'))).rejects.toMatchObject({ code: 'sandbox_not_found' });
  handedOut(await a.take('u'));
  expect(await history.events(world.idOf('u'))).toEqual([]);
  const entry = { at: 1, event: 'held', owner: OWNER, reason: 'created', key: null, container: null } as const;
  await a.store.history.append([{ id: world.idOf('u'), entry }]);
  expect(await history.events(world.idOf('u'))).toEqual([entry]);
  expect(world.database.history).toBeInstanceOf(MemoryHistory);
});
