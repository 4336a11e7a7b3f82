import { LIFECYCLE, LOOP, type Mutation, rulesOf } from './mutation.ts';

/** The rules of renewing, reaping, reconciling and ending. */
// biome-ignore format: one row a rule
export const TIMER_MUTATIONS: readonly Mutation[] = [
  ...rulesOf('src/lifecycle/removal-backoff.ts', LIFECYCLE, [
    ['the pause before a removal is tried again grows', '* 2 ** (count - 1)', ''],
  ]),
  ...rulesOf('src/lifecycle/tracked.ts', LIFECYCLE, [
    ['a lease too old is not acted on', 'return now - lease.confirmedAt < this.#leaseMs;', 'return now - lease.confirmedAt < Number.MAX_VALUE;'],
    ['a lease taken anew survives a lost of before', 'record.fence === fence && this.#', 'record.fence !== undefined && this.#'],
  ]),
  ...rulesOf('src/lifecycle/failed-starts.ts', LIFECYCLE, [
    ['a failed start that cannot be read stops no other', "if (hasCode(error, 'record_unreadable')) return 'refused';", ''],
  ]),
  ...rulesOf('src/lifecycle/shutdown.ts', LIFECYCLE, [
    ['what was handed over is not renewed', 'for (const { id, fence } of leases) tracked.forget(id, fence);', ''],
    ['destroy: what became ready meanwhile goes too', "if (claim === 'refused' && state === 'starting') claim = await store.claim(id, fence, { kind: 'shutdown' });", ''],
  ]),
  ...rulesOf('src/lifecycle/starter.ts', LIFECYCLE, [
    ['a start makes nothing once its lease is gone', "if (!isMine()) return 'moved';", ''],
  ]),
  ...rulesOf('src/lifecycle/destroy.ts', LIFECYCLE, [
    ['a destruction asks the engine nothing while a start lives', "if (record !== null && record.state === 'starting' && !isExpired(record, record.now)) return 'again';", ''],
  ]),
  ...rulesOf('src/lifecycle/liveness.ts', LIFECYCLE, [
    ['a list of a stream that has broken makes nothing known', '      if (stream.signal.aborted) return;\n', ''],
    ['a list of a broken stream that fails does not break the next', 'stream.abort(error);', 'this.#broken.abort(error);'],
    ['a look of an earlier stream is not believed', "if (seen.kind === 'running' && !signal.aborted)", "if (seen.kind === 'running')"],
    ['a look that a removal has overtaken is not believed', 'if (this.#asking === 0) this.#lastEvent.delete(container);', 'this.#lastEvent.delete(container);'],
    ['ends are looked at a few at a time', 'const PARALLEL_ENDS = 8;', 'const PARALLEL_ENDS = 1_000;'],
  ]),
  ...rulesOf('src/lifecycle/reconciler.ts', LIFECYCLE, [
    ['a name that cannot be given back stops no other step', "      backoff.failed(container, clock.monotonic());\n      const message", '      throw error;\n      const message'],
  ]),
  ...rulesOf('src/lifecycle/engine.ts', LIFECYCLE, [
    ['leases in memory beside a fleet: nothing is concluded', 'if (note !== null && !store.seesPeers) {', 'if (false as boolean) {'],
    ['leases in memory beside a fleet: what was settled before counts no more', "      this.#settled = null;\n      emit({ type: 'leases", "      emit({ type: 'leases"],
    ['a fleet notes that it shares its leases', 'runtime.sharedNote(store.seesPeers)', 'runtime.sharedNote(false)'],
  ]),
  ...rulesOf('src/lifecycle/idle-reaper.ts', LIFECYCLE, [
    ['only so many idle ones go at once', 'const AT_ONCE = 4;', 'const AT_ONCE = 1_000;'],
    ['one that ended makes room for another', '.then(() => this.#underWay.delete(removal))', ''],
    ['a reaper that is stopped does not wait', ' && !stopping?.aborted) {', ') {'],
    ['a reaper that is stopped claims nothing more', 'return !stopping?.aborted;', 'return true;'],
    ['a pass leaves the rest to the next one', 'if (leftMs <= 0) return false;', 'if (leftMs <= 0) break;'],
  ]),
  ...rulesOf('src/lifecycle/renewal.ts', LIFECYCLE, [
    ['what was handed over while a pass was under way is not renewed', 'const mine = leases.filter(({ record: { id, fence } }) => tracked.current(id, sentAt)?.record.fence === fence);', 'const mine = leases;'],
    ['what was lapsed is written again', 'await this.#reassert(lease);', ';'],
    ['what was lost is forgotten', "if (tracked.forget(id, fence)) emit({ type: 'lease-lost', sandbox: id, fence });\n          break;", 'break;'],
    ['a lease is as old as the sending of its renewal', 'tracked.renewed(id, fence, sentAt);', 'tracked.renewed(id, fence, clock.monotonic());'],
    ['a renewal tells what is remembered ready', "ready: state === 'ready' }", 'ready: false }'],
    ['what was taken anew meanwhile is not written back', 'if (tracked.current(id, clock.monotonic())?.record.fence !== fence) return;', ''],
    ['an outage starts the wait of failed starts anew', '      failedStarts.interrupted();\n', ''],
  ]),
  ...rulesOf('src/lifecycle/reconcile-plan.ts', LIFECYCLE, [
    ['an unowned container is adopted only after a lease', 'if (lasting === null || lasting < scene.leaseMs) return null;', ''],
    ['without peers there is no wait', "if (suspicion === 'unowned' && !scene.seesPeers) return { kind: 'adopt', id: role.id, container };", ''],
    ['verified: only such a record makes another container stray', "return record.state === 'ready' && record.verified && !named ? 'stray' : null;", "return record.state === 'ready' && !named ? 'stray' : null;"],
    ['a stray is removed at all', "return { kind: 'stray', id: role.id, container: id };", 'return null;'],
    ['a condemned container whose removal is under way is left to it', "return underway ? null : 'condemned';", "return 'condemned';"],
    ['a condemned container under an unverified record is cleared', "return { kind: 'unsettled', id: role.id, fence: record.fence, container: id };", 'return null;'],
    ['heal: a condemned container that was seen fit gets its name back', "if (record.verified) return { kind: 'heal', id: role.id, container: id };", ''],
    ['heal: one that nobody looked at does not', "if (record.verified) return { kind: 'heal'", "if (record) return { kind: 'heal'"],
    ['an expired removal is finished', "if (state === 'destroying') return [{ kind: 'finish', id, fence, container }];", "if (state === 'destroying') return [];"],
    ['an expired start with nothing running is finished', "return dead ? [{ kind: 'finish', id, fence, container: holder?.id ?? null }] : [];", 'return [];'],
    ['adopt_running: an expired start with something running is not', "return dead ? [{ kind: 'finish', id, fence, container: holder?.id ?? null }] : [];", "return [{ kind: 'finish', id, fence, container: holder?.id ?? null }];"],
    ['adopt_running: what runs under an expired start is unowned', "return !dead && isExpired(record, now) ? 'unowned' : null;", 'return null;'],
    ['what runs under a live start is not', "return !dead && isExpired(record, now) ? 'unowned' : null;", "return !dead ? 'unowned' : null;"],
    ['an expired start names what holds its name', 'container: holder?.id ?? null }', 'container: null }'],
    ['a live start or removal is left alone', '      if (!expired) return [];\n', ''],
    ['an expired record is adopted', "if (ended) return expired || record.owner === me ? [{ kind: 'end', id, container }] : [];\n      return expired ? [{ kind: 'adopt', id, container: null }] : [];", "if (ended) return expired || record.owner === me ? [{ kind: 'end', id, container }] : [];\n      return [];"],
    ['a container that ended by itself is noticed', "if (ended) return expired || record.owner === me ? [{ kind: 'end', id, container }] : [];", ''],
    ['an end is told by the engine that the record names', 'container === null || record.engine !== engine', 'container === null'],
    ['a dead container without a record is not adopted', "if (record === null) return dead ? 'dead' : 'unowned';", "if (record === null) return 'unowned';"],
    ['tombstone: what runs beside one is left alone', "if (record.state === 'gone') return dead ? 'dead' : null;", "if (record.state === 'gone') return dead ? 'dead' : 'unowned';"],
    ['a record that cannot be read is left alone', '  if (unreadable) return null;\n', ''],
  ]),
  ...rulesOf('src/lifecycle/reconciler.ts', LIFECYCLE, [
    ['a pass that saw half starts the wait anew', 'sightings.interrupted();', ';'],
    ['a foreign name is reported once', 'if (this.#reported.has(id)) return;', ''],
    ['a refused claim removes nothing (expired)', "if (claim !== 'refused') teardown.begin(claim, 'expired');", "teardown.begin(claim as never, 'expired');"],
    ['a stray whose removal failed is tried again later', 'if (backoff.mayTry(step.container, clock.monotonic())) teardown.beginStray', 'teardown.beginStray'],
    ['what is adopted is not handed out', 'tracked.remember(record, sentAt, false);', 'tracked.remember(record, sentAt, true);'],
    ['a part is planned with all that the whole look showed', 'plan(part, sightings, now, present)', 'plan(part, sightings, now)'],
    ['a removal that failed in one part is not forgotten for another', 'backoff.keepOnly(present);', 'backoff.keepOnly(presentIn(parts[0]!));'],
    ['what is on its way out in one part is not forgotten for another', 'teardown.keepOnly(present);', 'teardown.keepOnly(presentIn(parts[0]!));'],
    ['the suspects of all parts count as one look', 'sightings.note(suspected, now);', 'sightings.note(suspects(parts[0]!), now);'],
    ['other work is let in between parts', 'if (parts.length > 1) await this.#options.clock.pause(0);', ''],
  ]),
  ...rulesOf('src/lifecycle/sightings.ts', LIFECYCLE, [
    ['a sighting counts only with an earlier one', 'known === undefined || known.pass === this.#pass', 'known === undefined'],
    ['another suspicion begins anew', 'known?.suspicion === suspicion ? known.since : now', 'known?.since ?? now'],
    ['what is not suspect any more is forgotten', 'for (const container of this.#seen.keys()) if (!suspects.has(container)) this.#seen.delete(container);', ''],
    ['an interruption keeps what is no question of owners', "if (suspicion === 'unowned') this.#seen.delete(container);", 'if (suspicion) this.#seen.delete(container);'],
  ]),
  ...rulesOf('src/lifecycle/endings.ts', LIFECYCLE, [
    ['an end is looked at once more', "if (seen.kind !== 'gone' && seen.kind !== 'stopped') return false;", ''],
    ['what has ended is not renewed', 'if (mine?.record.container === container) tracked.forget(id, mine.record.fence);', ''],
  ]),
  ...rulesOf('src/lifecycle/liveness.ts', LIFECYCLE, [
    ['an end that the list does not show yet is looked at again', 'await clock.pause(pauseMs);', 'return;'],
    ['an exit code that was told is kept for the removal', 'told ?? this.#exitCodes.get(container) ?? null', 'told'],
  ]),
  ...rulesOf('src/lifecycle/shutdown.ts', LIFECYCLE, [
    ['shutdown removes only what was handed out here', '.filter(({ handedOut }) => handedOut)', ''],
    ['shutdown hands the rest over', 'await this.keep();', ''],
    ['shutdown claims before it removes', "if (claim !== 'refused') await teardown.run(claim, 'shutdown');", "await teardown.run(claim as never, 'shutdown');"],
  ]),
  ...rulesOf('src/lifecycle/engine.ts', LIFECYCLE, [
    ['another engine concludes nothing', 'this.#mismatch = expected !== seen;', 'this.#mismatch = false;'],
  ]),
  ...rulesOf('src/lifecycle/background-loop.ts', LOOP, [
    ['a loop waits for its pass before the next', 'const succeeded = await this.#pass();', 'const succeeded = true;\n      void this.#pass();'],
    ['an error ends no loop', '      this.#lastFailure = message;\n      return false;', '      this.#lastFailure = message;\n      throw error;'],
  ]),
];
