import { expect, test } from 'vitest';
import { describeMeeting, parseMeeting } from './describe.ts';
import { MUTATIONS, type Rule } from './mutations.ts';
import { type Bounds, replay, Search, type Violation } from './search.ts';

/** What the search of one meeting finds when a rule of the protocol is taken away. */
const BITES: readonly (readonly [Rule, string, Bounds, RegExp])[] = [
  ['a removal is confirmed after the condemning', 'warm acquire@a+reap@a', { preemptions: 1, faults: 1 }, /^S1/],
  ['a container is condemned before it is removed', 'warm acquire@a+reap@a', { preemptions: 1, faults: 0 }, /^S1/],
  ['a condemned container is not handed out', 'warm acquire@a+reap@a', { preemptions: 1, faults: 1 }, /^S1/],
  ['what is held is not claimed', 'warm acquire@a+evict@a', { preemptions: 0, faults: 0 }, /^S1/],
  ['a container that was found gets an unknown hold', 'active acquire@a+reap@a', { preemptions: 0, faults: 1 }, /^S1/],
  ['a record of an earlier life is not trusted', 'warm acquire@a+evict@a', { preemptions: 0, faults: 1 }, /^S1/],
  ['a record that nobody verified is not trusted', 'dead acquire@a+sweep@b', { preemptions: 0, faults: 1 }, /^S1/],
  [
    'a tombstone keeps off whoever remembers the sandbox',
    'warm acquire@a+evict@b',
    { preemptions: 0, faults: 0 },
    /^S4/,
  ],
  [
    'the container of a removal under way becomes residue',
    'active acquire@a+destroy@b',
    { preemptions: 0, faults: 1 },
    /^S5/,
  ],
  [
    'a start that its owner remembers ready is written back',
    'warm acquire@a+evict@b',
    { preemptions: 0, faults: 1 },
    /the record is starting/,
  ],
  ['a container in use gets its name back', 'warm acquire@a+evict@a', { preemptions: 1, faults: 1 }, /still condemned/],
];

test.for(BITES)(
  '[T-02] the search finds out when a rule is taken away: %s',
  { timeout: 120_000 },
  async ([rule, name, bounds, kind]) => {
    const search = new Search(parseMeeting(name), bounds, { mutation: MUTATIONS[rule] });
    let found: Violation | null = null;
    while (!search.done && !kind.test(found?.what ?? '')) found = await search.next();
    expect(found?.what).toMatch(kind);
    const { violation } = await replay(search.meeting, found?.schedule ?? '', { mutation: MUTATIONS[rule] });
    expect(violation).toBe(found?.what);
  },
);

/** Rules that only more than two operations, or more than one fault, can tell from their absence. */
const LONG_BITES: readonly (readonly [Rule, string, string, RegExp])[] = [
  [
    'a missing record refuses an activation',
    'none acquire@a+reconcile@b+evict@b',
    '1.0.0.0.0.0.0.lost.1.1.1.holds.2.2.2.2.2.2.tombstone.0.0',
    /^S2/,
  ],
  [
    'a name is given back only in its life, and removals go by the condemned name',
    'warm evict@a+reconcile@b+acquire@a',
    '1.0.0.0.0.expiry.1.1.1.1.1.copy0.0.0.2.2.2.2.1',
    /^S1/,
  ],
];

test.for(LONG_BITES)(
  '[T-18] one schedule tells that a rule is taken away: %s',
  async ([rule, name, schedule, kind]) => {
    const meeting = parseMeeting(name);
    expect(describeMeeting(meeting)).toBe(name);
    expect((await replay(meeting, schedule, { mutation: MUTATIONS[rule] })).violation).toMatch(kind);
  },
);

test('every rule that can be taken away is missed', () => {
  const tried = [...BITES, ...LONG_BITES].map(([rule]) => rule);
  expect(tried.toSorted()).toEqual(Object.keys(MUTATIONS).toSorted());
});
