import { expect, test } from 'vitest';
import { BrokerError, hasCode, messageOf } from '../../src/domain/errors.ts';
import { isSandboxId, sandboxId } from '../../src/domain/identity.ts';
import { asContainerId, type Fence, formatFence, parseFence } from '../../src/domain/ids.ts';
import { condemnedName, parseContainerName, sandboxName, spareName } from '../../src/domain/names.ts';
import { C1, ID, IDENTITY } from '../support/lease-harness.ts';

const SHORT = C1.slice(0, 12);
const roleOf = (name: string, container = C1) => parseContainerName('sandbox', name, container);

test('[L-29] a fence is read from exactly the digits that were given out', () => {
  for (const fence of [1, 9, 1_700_000_000_000_000, Number.MAX_SAFE_INTEGER]) {
    expect(parseFence(formatFence(fence as Fence))).toBe(fence);
  }
  for (const text of [
    '',
    '0',
    '01',
    '-1',
    '1.5',
    '1e3',
    ' 1',
    '1 ',
    'a1',
    '1a',
    '9007199254740992',
    '10000000000000000',
  ]) {
    expect(parseFence(text)).toBeNull();
  }
});

test('[A-17] an id is the hash of all four parts, 32 hex digits', () => {
  expect(isSandboxId(ID)).toBe(true);
  for (const part of ['deployment', 'profile', 'userId', 'threadId'] as const) {
    expect(sandboxId({ ...IDENTITY, [part]: `${IDENTITY[part]}x` })).not.toBe(ID);
  }
  const known = sandboxId({ deployment: 'd', profile: 'p', userId: 'u', threadId: 't' });
  expect(known).toBe('5d60e2b980322bf16739d046978638d8'); // as any other program would compute it
  for (const text of ['', 'a'.repeat(31), 'a'.repeat(33), 'A'.repeat(32), 'g'.repeat(32), `x${ID}`, `${ID}x`]) {
    expect(isSandboxId(text)).toBe(false);
  }
});

test('[R-22] names say what their containers are for; any other name is none of ours', () => {
  expect(roleOf(sandboxName('sandbox', ID))).toEqual({ kind: 'sandbox', id: ID });
  expect(condemnedName('sandbox', ID, C1)).toBe(`sandbox-condemned-${ID}-${SHORT}`);
  expect(roleOf(condemnedName('sandbox', ID, C1))).toEqual({ kind: 'condemned', id: ID });
  expect(roleOf(spareName('sandbox', 'x1'))).toEqual({ kind: 'spare' });
  const names = [
    ...[
      ID,
      'sandbox',
      `sandbox${ID}`,
      `other-${ID}`,
      `sandbux-${ID}`,
      `sandbox-${ID}x`,
      `sandbox-x${ID}`,
      'sandbox-spare',
      'sandbox-',
    ],
    ...[`sandbox-condemned-${ID}`, `sandbox-condemned-${ID}-${SHORT}-x`, `sandbox-condemned-x-${SHORT}`],
    ...[
      `sandbox-condemned-${ID}-${C1.slice(0, 11)}`,
      `sandbox-condemned-${ID}-${C1.slice(0, 13)}`,
      'sandbox-condemned',
    ],
    ...[`sandbox-condemned-${ID}-`, `sandbox-removed-${ID}-${SHORT}`],
  ];
  for (const name of names) expect([name, roleOf(name)]).toEqual([name, { kind: 'foreign' }]);
  expect(roleOf(condemnedName('sandbox', ID, C1), asContainerId('d'.repeat(64)))).toEqual({ kind: 'foreign' });
});

test('an error carries what it was given, and nothing that it was not', () => {
  const cause = new Error('cause');
  const previous = { endedAt: 1, reason: 'r', exitCode: null, logTail: '' };
  const full = new BrokerError('sandbox_not_found', 'm', { cause, retryAfterMs: 5, previous });
  expect(full).toMatchObject({ name: 'BrokerError', code: 'sandbox_not_found', message: 'm', cause, retryAfterMs: 5 });
  expect(full.previous).toBe(previous);
  const bare = new BrokerError('hold_lost', 'm');
  expect(bare).toMatchObject({ retryAfterMs: null, previous: null });
  expect('cause' in bare).toBe(false);
});

test('an error is known by its code, whatever else was thrown', () => {
  const error = new BrokerError('hold_lost', 'm');
  expect(hasCode(error, 'forbidden', 'hold_lost')).toBe(true);
  expect(hasCode(error, 'forbidden')).toBe(false);
  expect(hasCode({ code: 'hold_lost' }, 'hold_lost')).toBe(false);
  expect(messageOf(error)).toBe('m');
  expect(messageOf('text')).toBe('text');
});
