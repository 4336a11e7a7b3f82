import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sighting } from '../../src/domain/container.ts';
import { sandboxId } from '../../src/domain/identity.ts';
import { asContainerId, asOwnerId, type ContainerId, parseFence, type SandboxId } from '../../src/domain/ids.ts';
import { condemnedName, sandboxName, spareId } from '../../src/domain/names.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { ContainerRuntime, CreateRequest } from '../../src/runtime/container-runtime.ts';

/** One engine with two replicas of a deployment on it, and what a test does behind their backs. */
export interface RuntimeWorld extends AsyncDisposable {
  readonly namePrefix: string;
  readonly deployment: string;
  readonly runtime: ContainerRuntime;
  readonly peer: ContainerRuntime;
  /** A replica of another deployment with the same name prefix, on the same engine. */
  readonly stranger: ContainerRuntime;
  readonly profiles: { readonly serving: Profile; readonly silent: Profile; readonly ending: Profile };
  /** A profile whose image is nowhere and may not be pulled. */
  readonly imageless: Profile;
  /** Waits until a started container of the profile `ending` has ended: exit code 3, last log line `line 30`. */
  letEnd(container: ContainerId): Promise<void>;
  stop(container: ContainerId): Promise<void>;
  startAgain(container: ContainerId): Promise<void>;
  pause(container: ContainerId): Promise<void>;
  vanish(container: ContainerId): Promise<void>;
  /** Puts a running container without labels under this name. */
  occupy(name: string): Promise<void>;
  /** The state of whatever has this name; null: nothing has. */
  stateOf(name: string): Promise<string | null>;
}

const FENCE = parseFence('1790000000000001')!;
const SPEC = 'spec-1';
const OWNER = asOwnerId('host:owner');
const NOWHERE = asContainerId('0'.repeat(64));

/** What every container runtime does. `open` makes a new world for each test. */
export function runtimeContract(kind: string, open: () => Promise<RuntimeWorld>): void {
  describe(`container runtime: ${kind}`, () => {
    let world: RuntimeWorld;
    let id: SandboxId;
    let request: CreateRequest;

    beforeEach(async () => {
      world = await open();
      const who = { userId: 'u/../"1"', threadId: 'täglich: 🙂' };
      id = sandboxId({ deployment: world.deployment, profile: 'serving', ...who });
      request = { id, profile: world.profiles.serving, spec: SPEC, owner: OWNER, fence: FENCE, ...who };
    });
    afterEach(async () => world[Symbol.asyncDispose]());

    const create = async (profile = world.profiles.serving): Promise<ContainerId> => {
      const made = await world.runtime.create({ ...request, profile });
      if (made === 'name_taken') throw new Error('the name is taken');
      return made;
    };
    const run = async (profile = world.profiles.serving): Promise<ContainerId> => {
      const container = await create(profile);
      await world.runtime.start(container);
      return container;
    };
    const name = (): string => sandboxName(world.namePrefix, id);
    const urlOf = (seen: Sighting): string | null => (seen.kind === 'running' ? seen.container.url : null);

    test('[R-01] lists every container of the deployment, running or not, with all that is known of it', async () => {
      const running = await run();
      const { url } = await world.runtime.waitReady(running, world.profiles.serving, 20_000);
      const spare = await world.runtime.createSpare({ profile: world.profiles.silent, spec: 'spec-2', owner: OWNER });
      const list = await world.peer.list();
      const byId = new Map(list.map((container) => [container.id, container]));
      expect(list).toHaveLength(2);
      expect(byId.get(running)).toEqual({
        id: running,
        name: name(),
        role: { kind: 'sandbox', id },
        state: 'running',
        labels: {
          profile: 'serving',
          spec: SPEC,
          owner: OWNER,
          fence: FENCE,
          userId: request.userId,
          threadId: request.threadId,
        },
        createdAt: expect.any(Number),
        url,
      });
      expect(byId.get(spare.container)).toMatchObject({
        role: { kind: 'spare' },
        state: 'created',
        url: null,
        labels: { profile: 'silent', spec: 'spec-2', owner: OWNER, fence: null, userId: null, threadId: null },
      });
      expect((byId.get(running)?.createdAt ?? 1) % 1000).toBe(0);
    });

    test('[R-02] another deployment, and a container without labels under the prefix, are invisible', async () => {
      const container = await create();
      await world.occupy(`${world.namePrefix}-${'f'.repeat(32)}`);
      expect(await world.stranger.list()).toEqual([]);
      expect((await world.runtime.list()).map((seen) => seen.id)).toEqual([container]);
      const seen = await world.stranger.look({ container });
      expect(seen).toMatchObject({ kind: 'unknown', cause: { code: 'foreign_container' } });
      expect(await world.stranger.postMortem(container)).toBeNull();
    });

    test('[R-05] a look tells running, stopped and gone, by name and by id', async () => {
      expect(await world.runtime.look({ sandbox: id })).toEqual({ kind: 'gone' });
      expect(await world.runtime.look({ container: NOWHERE })).toEqual({ kind: 'gone' });
      const container = await create();
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({
        kind: 'stopped',
        container: { id: container },
      });
      await world.runtime.start(container);
      await world.runtime.waitReady(container, world.profiles.serving, 20_000);
      for (const target of [{ sandbox: id }, { container }]) {
        expect(await world.peer.look(target)).toMatchObject({ kind: 'running', container: { id: container } });
      }
      await world.stop(container);
      expect(await world.runtime.look({ container })).toMatchObject({
        kind: 'stopped',
        container: { state: 'exited', url: null },
      });
      await world.vanish(container);
      expect(await world.runtime.look({ container })).toEqual({ kind: 'gone' });
    });

    test('[R-05] a paused container is neither fit nor dead, and a foreign one is never ours', async () => {
      const container = await run();
      await world.pause(container);
      expect(await world.runtime.look({ container })).toMatchObject({
        kind: 'unknown',
        cause: { code: 'sandbox_unsettled' },
      });
      const other = sandboxId({ deployment: world.deployment, profile: 'serving', userId: 'x', threadId: 'y' });
      await world.occupy(sandboxName(world.namePrefix, other));
      expect(await world.runtime.look({ sandbox: other })).toMatchObject({
        kind: 'unknown',
        cause: { code: 'foreign_container' },
      });
    });

    test('[R-07] a container that was started again has another url, and the old one is not told any more', async () => {
      const container = await run();
      const { url } = await world.runtime.waitReady(container, world.profiles.serving, 20_000);
      expect(urlOf(await world.runtime.look({ container }))).toBe(url);
      await world.stop(container);
      await world.startAgain(container);
      const again = await world.runtime.waitReady(container, world.profiles.serving, 20_000);
      expect(again.url).not.toBe(url);
      expect(urlOf(await world.runtime.look({ container }))).toBe(again.url);
    });

    test('[R-11] of two creates for one sandbox one makes a container, the other finds the name taken', async () => {
      const replies = await Promise.all([world.runtime.create(request), world.peer.create(request)]);
      expect(replies.filter((reply) => reply === 'name_taken')).toHaveLength(1);
      const [made] = replies.filter((reply) => reply !== 'name_taken');
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({ container: { id: made } });
      expect(await world.runtime.list()).toHaveLength(1);
    });

    test('[R-12] a name held by a foreign container is reported, and that container is untouched', async () => {
      await world.occupy(name());
      await expect(world.runtime.create(request)).rejects.toMatchObject({ code: 'foreign_container' });
      const spare = await world.runtime.createSpare(request);
      await expect(world.runtime.dedicate(id, spare)).rejects.toMatchObject({ code: 'foreign_container' });
      await world.runtime.condemnSpare(spare);
      await world.runtime.remove(spareId(spare.container), spare.container, 'stop');
      expect(await world.stateOf(name())).toBe('running');
      expect(await world.runtime.list()).toEqual([]);
    });

    test('[R-13] without its image nothing is created', async () => {
      const profile = world.imageless;
      expect(await world.runtime.hasImage(profile)).toBe(false);
      expect(await world.runtime.hasImage(world.profiles.serving)).toBe(true);
      await world.runtime.ensureImage(world.profiles.serving);
      await expect(world.runtime.ensureImage(profile)).rejects.toMatchObject({ code: 'image_unavailable' });
      await expect(world.runtime.create({ ...request, profile })).rejects.toMatchObject({ code: 'image_unavailable' });
      expect(await world.runtime.list()).toEqual([]);
    });

    test('[R-19] of several condemnations at once exactly one knows that it did it', async () => {
      const container = await run();
      const both = [world.runtime, world.peer];
      const answers = await Promise.all([...both, ...both, ...both, ...both].map((one) => one.condemn(id, container)));
      expect(answers.filter((did) => did)).toHaveLength(1);
      expect(await world.runtime.condemn(id, container)).toBe(false);
      expect(await world.runtime.condemn(id, NOWHERE)).toBe(false);
      expect(await world.runtime.look({ sandbox: id })).toEqual({ kind: 'gone' });
      expect(await world.runtime.look({ container })).toMatchObject({
        kind: 'running',
        container: { role: { kind: 'condemned', id } },
      });
    });

    test('[R-19] a name is free once condemned, and can be given back unless somebody has it', async () => {
      const container = await run();
      await world.runtime.condemn(id, container);
      await world.peer.giveBack(id, container);
      await world.peer.giveBack(id, container);
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({
        kind: 'running',
        container: { id: container },
      });
      expect(await world.peer.condemn(id, container)).toBe(true);
      const next = await create();
      await world.runtime.giveBack(id, container);
      await world.runtime.giveBack(id, NOWHERE);
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({ container: { id: next } });
      expect(await world.stateOf(condemnedName(world.namePrefix, id, container))).toBe('running');
    });

    test('[R-09] removal goes by the condemned name only, and finds nothing once the name was given back', async () => {
      const container = await run();
      expect(await world.runtime.remove(id, container, 'stop')).toBe('removed');
      expect(await world.stateOf(name())).toBe('running');
      await world.runtime.condemn(id, container);
      await world.runtime.giveBack(id, container);
      expect(await world.peer.remove(id, container, 'kill')).toBe('removed');
      expect(await world.stateOf(name())).toBe('running');
    });

    for (const how of ['stop', 'kill'] as const) {
      for (const state of ['created', 'running', 'paused', 'exited'] as const) {
        test(`[R-09] ${how} removes a ${state} container, and again is no error`, async () => {
          const container = state === 'created' ? await create() : await run();
          if (state === 'paused') await world.pause(container);
          if (state === 'exited') await world.stop(container);
          await world.runtime.condemn(id, container);
          expect(await world.runtime.remove(id, container, how)).toBe('removed');
          expect(await world.runtime.look({ container })).toEqual({ kind: 'gone' });
          expect(await world.peer.remove(id, container, how)).toBe('removed');
          expect(await world.runtime.list()).toEqual([]);
        });
      }
    }

    test('[R-09] several removers at once all succeed', async () => {
      const container = await run();
      await world.runtime.condemn(id, container);
      const removers = [world.runtime, world.peer, world.runtime, world.peer];
      const answers = await Promise.all(removers.map((one) => one.remove(id, container, 'stop')));
      expect(answers).toEqual(['removed', 'removed', 'removed', 'removed']);
      expect(await world.runtime.list()).toEqual([]);
    });

    test('[R-09] a removal without force leaves what turned out to run', async () => {
      const container = await run();
      await world.runtime.condemn(id, container);
      expect(await world.runtime.remove(id, container, 'onlyIfStopped')).toBe('left');
      await world.pause(container);
      expect(await world.runtime.remove(id, container, 'onlyIfStopped')).toBe('left');
      expect(await world.stateOf(condemnedName(world.namePrefix, id, container))).toBe('paused');
      await world.vanish(container);
      expect(await world.runtime.remove(id, container, 'onlyIfStopped')).toBe('removed');
      const stopped = await create();
      await world.runtime.condemn(id, stopped);
      expect(await world.runtime.remove(id, stopped, 'onlyIfStopped')).toBe('removed');
      expect(await world.runtime.list()).toEqual([]);
    });

    test('[A-01] starts, waits, and tells the url that the list shows; starting again is no error', async () => {
      const container = await run();
      await world.peer.start(container);
      const { url } = await world.peer.waitReady(container, world.profiles.serving, 20_000);
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      expect(urlOf(await world.runtime.look({ sandbox: id }))).toBe(url);
    });

    test('[A-10] what never answers is not ready, what ended or is gone failed to start', async () => {
      const silent = await run(world.profiles.silent);
      await expect(world.runtime.waitReady(silent, world.profiles.silent, 400)).rejects.toMatchObject({
        code: 'sandbox_not_ready',
      });
      await world.vanish(silent);
      const ending = await run(world.profiles.ending);
      await world.letEnd(ending);
      const { code, message } = await world.runtime.waitReady(ending, world.profiles.ending, 20_000).then(
        () => ({ code: 'none', message: '' }),
        (error) => error,
      );
      expect(code).toBe('sandbox_start_failed');
      expect(message).toContain('line 30');
      await expect(world.runtime.start(NOWHERE)).rejects.toMatchObject({ code: 'sandbox_start_failed' });
      await expect(world.runtime.waitReady(NOWHERE, world.profiles.serving, 9_000)).rejects.toMatchObject({
        code: 'sandbox_start_failed',
      });
    });

    test('[R-18] a post-mortem tells exit code, reason, time and last log lines', async () => {
      expect(await world.runtime.postMortem(NOWHERE)).toBeNull();
      const container = await create(world.profiles.ending);
      expect(await world.runtime.postMortem(container)).toMatchObject({ exitCode: null, reason: 'never started' });
      await world.runtime.start(container);
      await world.letEnd(container);
      const end = await world.peer.postMortem(container);
      expect(end).toMatchObject({ exitCode: 3, reason: 'exited with code 3', endedAt: expect.any(Number) });
      expect(end?.logTail).toMatch(/line 30\b/);
    });

    test('[C-05] a spare gets a sandbox name once, and only if that is free', async () => {
      const spares = [await world.runtime.createSpare(request), await world.peer.createSpare(request)] as const;
      const { container } = spares[0];
      expect(await world.runtime.dedicate(id, { container: NOWHERE, name: `${spares[0].name}0` })).toBe('gone');
      expect(await world.runtime.dedicate(id, spares[0])).toBe('named');
      expect(await world.peer.dedicate(id, spares[0])).toBe('named');
      expect(await world.peer.dedicate(id, spares[1])).toBe('name_taken');
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({ container: { id: container } });
    });

    test('[C-05] whoever comes late to a spare that was dedicated or condemned finds nothing', async () => {
      const other = sandboxId({ deployment: world.deployment, profile: 'serving', userId: 'u', threadId: 'late' });
      const spares = [await world.runtime.createSpare(request), await world.peer.createSpare(request)] as const;
      await world.runtime.dedicate(id, spares[0]);
      expect(await world.peer.dedicate(other, spares[0])).toBe('gone');
      expect(await world.peer.condemnSpare(spares[0])).toBe(false);
      expect(await world.runtime.look({ sandbox: id })).toMatchObject({ container: { id: spares[0].container } });

      expect(await world.peer.condemnSpare(spares[1])).toBe(true);
      expect(await world.runtime.condemnSpare(spares[1])).toBe(true);
      expect(await world.runtime.dedicate(other, spares[1])).toBe('gone');
      const gone = spareId(spares[1].container);
      expect(await world.runtime.look({ container: spares[1].container })).toMatchObject({
        container: { role: { kind: 'condemned', id: gone } },
      });
      expect(await world.runtime.remove(gone, spares[1].container, 'kill')).toBe('removed');
      expect(await world.peer.condemnSpare(spares[1])).toBe(false);
      expect(await world.runtime.list()).toHaveLength(1);
    });

    test('[R-17] an engine is known by one mark for all replicas of a deployment', async () => {
      const marks = await Promise.all([world.runtime.mark(), world.peer.mark(), world.runtime.mark()]);
      expect(new Set(marks).size).toBe(1);
      expect(marks[0]).not.toBe('');
      expect(await world.peer.mark()).toBe(marks[0]);
      expect(await world.stranger.mark()).not.toBe(marks[0]);
    });

    test('[R-17] that brokers share a lease store is noted in the engine, for their deployment only', async () => {
      expect(await world.runtime.sharedNote(false)).toBeNull();
      const notes = await Promise.all([world.runtime.sharedNote(true), world.peer.sharedNote(true)]);
      expect(notes[0]).toBe(notes[1]);
      expect(await world.peer.sharedNote(false)).toBe(notes[0]);
      expect(await world.stranger.sharedNote(false)).toBeNull();
    });

    test('[C-01] the engine tells what its machine has', async () => {
      const { memoryBytes, cpus } = await world.runtime.resources();
      expect(memoryBytes).toBeGreaterThan(2 ** 26);
      expect(cpus).toBeGreaterThanOrEqual(1);
      expect(await world.stranger.resources()).toEqual({ memoryBytes, cpus });
    });

    test('[S-01] a closed runtime answers nothing any more', async () => {
      await world.peer.ping();
      await world.peer.close();
      await world.peer.close();
      await expect(world.peer.list()).rejects.toMatchObject({ code: 'runtime_unavailable' });
      await expect(world.peer.ping()).rejects.toMatchObject({ code: 'runtime_unavailable' });
      expect(await world.peer.look({ sandbox: id })).toMatchObject({
        kind: 'unknown',
        cause: { code: 'runtime_unavailable' },
      });
      expect(await world.runtime.list()).toEqual([]);
    });

    test('[R-18] what happens to this deployment’s containers is told, in order, and to it alone', async () => {
      const told: { container: ContainerId; kind: string; exitCode: number | null }[] = [];
      const overheard: unknown[] = [];
      const stopping = new AbortController();
      const opened = Promise.withResolvers<void>();
      const following = Promise.all([
        world.runtime.watch({ opened: opened.resolve, changed: (change) => void told.push(change) }, stopping.signal),
        world.stranger.watch({ opened: () => undefined, changed: (change) => overheard.push(change) }, stopping.signal),
      ]);
      await opened.promise;
      const container = await run();
      await world.runtime.condemn(id, container);
      await world.stop(container);
      await world.runtime.remove(id, container, 'onlyIfStopped');
      await expect
        .poll(() => told.map(({ kind }) => kind), { timeout: 10_000 })
        .toEqual(['started', 'renamed', 'ended', 'removed']);
      expect(new Set(told.map((change) => change.container))).toEqual(new Set([container]));
      expect(told[2]?.exitCode).toBeTypeOf('number');
      expect(overheard).toEqual([]);
      stopping.abort();
      await following;
    });
  });
}
