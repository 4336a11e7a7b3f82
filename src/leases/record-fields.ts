import type { Previous } from '../domain/errors.ts';
import {
  asContainerId,
  asEngineMark,
  asLife,
  asOwnerId,
  type Fence,
  formatFence,
  type HoldId,
  type SandboxId,
} from '../domain/ids.ts';
import { type LeaseRecord, RECORD_VERSION, type StoredState } from '../domain/sandbox.ts';

/**
 * A record as text, field by field, as a Redis hash keeps it: numbers in decimal digits, so that none of them is ever
 * rounded; nothing (null) as an empty string; holds as `fence=until`, separated by commas. All fields are always there.
 */
export const RECORD_FIELDS = [
  'v',
  'state',
  'owner',
  'fence',
  'since',
  'container',
  'engine',
  'url',
  'expiresAt',
  'holds',
  'idleSince',
  'lastActiveAt',
  'life',
  'verified',
  'profile',
  'userId',
  'threadId',
  'spec',
  'createdAt',
  'previous',
] as const;
export type RecordField = (typeof RECORD_FIELDS)[number];
export type RecordFields = Readonly<Record<RecordField, string>>;

/** A record that cannot be read. `newer`: a later version of the broker wrote it. */
export interface Unreadable {
  readonly kind: 'unreadable';
  readonly reason: string;
  readonly newer: boolean;
}

const STATES: readonly string[] = ['starting', 'ready', 'destroying', 'gone'] satisfies StoredState[];
const NUMBER = /^[0-9]{1,16}$/;
const HOLDS = /^(?:[0-9]{1,16}=[0-9]{1,16}(?:,[0-9]{1,16}=[0-9]{1,16})*)?$/;

export function encodeRecord(record: LeaseRecord): RecordFields {
  return {
    v: String(record.v),
    state: record.state,
    owner: record.owner,
    fence: formatFence(record.fence),
    since: formatFence(record.since),
    container: record.container ?? '',
    engine: record.engine ?? '',
    url: record.url ?? '',
    expiresAt: record.expiresAt.toFixed(0),
    holds: [...record.holds].map(([hold, until]) => `${formatFence(hold)}=${until.toFixed(0)}`).join(','),
    idleSince: record.idleSince.toFixed(0),
    lastActiveAt: record.lastActiveAt.toFixed(0),
    life: record.life,
    verified: record.verified ? '1' : '0',
    profile: record.profile ?? '',
    userId: record.userId ?? '',
    threadId: record.threadId ?? '',
    spec: record.spec ?? '',
    createdAt: record.createdAt.toFixed(0),
    previous: encodePrevious(record.previous),
  };
}

/** A record from its fields' values in the order of `RECORD_FIELDS`. */
export function decodeValues(id: SandboxId, values: readonly (string | null)[]): LeaseRecord | Unreadable {
  return decodeRecord(id, Object.fromEntries(RECORD_FIELDS.map((name, n) => [name, values[n] ?? null])));
}

export function decodeRecord(
  id: SandboxId,
  fields: Readonly<Partial<Record<RecordField, string | null>>>,
): LeaseRecord | Unreadable {
  const version = fields.v ?? '';
  if (!NUMBER.test(version)) return unreadable('no format version');
  if (Number(version) > RECORD_VERSION) return { ...unreadable(`format ${version}`), newer: true };
  for (const name of RECORD_FIELDS) {
    if (typeof fields[name] !== 'string') return unreadable(`no ${name}`);
  }
  const known = fields as RecordFields;
  for (const name of ['fence', 'since', 'expiresAt', 'idleSince', 'lastActiveAt', 'createdAt'] as const) {
    if (!NUMBER.test(known[name])) return unreadable(`${name} is not a number`);
  }
  if (!STATES.includes(known.state)) return unreadable('no such state');
  if (known.owner === '') return unreadable('no owner');
  if (!HOLDS.test(known.holds)) return unreadable('holds cannot be read');
  return {
    v: Number(version),
    id,
    state: known.state as StoredState,
    owner: asOwnerId(known.owner),
    fence: Number(known.fence) as Fence,
    since: Number(known.since) as Fence,
    container: known.container === '' ? null : asContainerId(known.container),
    engine: known.engine === '' ? null : asEngineMark(known.engine),
    url: known.url || null,
    expiresAt: Number(known.expiresAt),
    holds: decodeHolds(known.holds),
    idleSince: Number(known.idleSince),
    lastActiveAt: Number(known.lastActiveAt),
    life: asLife(known.life),
    verified: known.verified === '1',
    profile: known.profile || null,
    userId: known.userId || null,
    threadId: known.threadId || null,
    spec: known.spec || null,
    createdAt: Number(known.createdAt),
    previous: decodePrevious(known.previous),
  };
}

export function encodePrevious(previous: Previous | null): string {
  if (previous === null) return '';
  const { endedAt, reason, exitCode, logTail } = previous;
  return JSON.stringify({ endedAt, reason, exitCode, logTail });
}

/** Text that is none tells nothing: it is for people, and no reason to call the record unreadable. */
function decodePrevious(text: string): Previous | null {
  if (text === '') return null;
  try {
    const { endedAt, reason, exitCode, logTail } = JSON.parse(text);
    const fits = Number.isFinite(endedAt) && typeof reason === 'string' && typeof logTail === 'string';
    return fits && (exitCode === null || Number.isFinite(exitCode)) ? { endedAt, reason, exitCode, logTail } : null;
  } catch {
    return null;
  }
}

function decodeHolds(text: string): ReadonlyMap<HoldId, number> {
  const holds = new Map<HoldId, number>();
  if (text === '') return holds;
  for (const part of text.split(',')) {
    const at = part.indexOf('=');
    holds.set(Number(part.slice(0, at)) as HoldId, Number(part.slice(at + 1)));
  }
  return holds;
}

export function unreadable(reason: string): Unreadable {
  return { kind: 'unreadable', reason, newer: false };
}
