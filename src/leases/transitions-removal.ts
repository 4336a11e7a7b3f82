import type { Previous } from '../domain/errors.ts';
import type { ContainerId, Fence } from '../domain/ids.ts';
import { isExpired, type LeaseRecord, unheldSince } from '../domain/sandbox.ts';
import type { Claim, ClaimCondition, ConfirmReply, ConfirmRequest } from './lease-store.ts';
import {
  asDestroying,
  asTombstone,
  claimOf,
  isMine,
  isNamed,
  leaseEnd,
  type Moment,
  newRecord,
  present,
  type Step,
  type Transition,
} from './transition.ts';

type ClaimArgs = { readonly fence: Fence; readonly condition: ClaimCondition };

export const claim: Transition<ClaimArgs, Claim | 'refused'> = (stored, at, { fence, condition }) => {
  const record = present(stored, at);
  if (record === null || record.fence !== fence) return { reply: 'refused' };
  const again = isMine(record, at, 'destroying', fence) && !(condition.kind === 'expired' && isExpired(record, at.now));
  if (again) return { reply: claimOf(record) };
  if (!mayClaim(record, at, condition)) return { reply: 'refused' };
  const container = record.state === 'starting' ? named(condition) : null;
  return claimed(record, at, keepsFence(record, at, condition) ? fence : at.nextFence(fence), container);
};

function mayClaim(record: LeaseRecord, at: Moment, condition: ClaimCondition): boolean {
  const mine = record.owner === at.owner;
  const unheld = unheldSince(record, at.now);
  switch (condition.kind) {
    case 'idle':
      return record.state === 'ready' && mine && unheld !== null && at.now - unheld >= condition.unheldMs;
    case 'shutdown':
      return record.state === 'ready' && mine;
    case 'replace':
      return record.state === 'ready' && mine && !othersHold(record, at.now);
    case 'capacity':
      return record.state === 'ready' && unheld !== null;
    case 'failed-start':
      return record.state === 'starting' && mine;
    case 'expired':
      return (record.state === 'starting' || record.state === 'destroying') && isExpired(record, at.now);
    case 'unsettled':
      return isNamed(record, condition.container) && !record.verified;
  }
}

/** True while a hold counts that is not of the record's own fence. */
function othersHold({ holds, fence }: LeaseRecord, now: number): boolean {
  return [...holds].some(([hold, until]) => hold !== fence && until > now);
}

/** Where the claim goes on with what its owner remembers, its fence stays. */
function keepsFence(record: LeaseRecord, at: Moment, { kind }: ClaimCondition): boolean {
  return record.owner === at.owner && kind !== 'expired' && kind !== 'unsettled';
}

const named = (condition: ClaimCondition): ContainerId | null =>
  condition.kind === 'failed-start' || condition.kind === 'expired' ? condition.container : null;

/** `container`: what a start made or found; without one, what the record names is removed. */
function claimed(record: LeaseRecord, at: Moment, fence: Fence, container: ContainerId | null) {
  const next = asDestroying(record, at, fence, container ?? record.container);
  return { record: next, reply: claimOf(next) };
}

type IntentArgs = { readonly container: ContainerId | null };

export const condemnByIntent: Transition<IntentArgs, Claim | 'wait' | 'underway' | 'nothing'> = (
  stored,
  at,
  { container },
) => {
  const record = present(stored, at);
  const fence = at.nextFence(stored?.fence);
  if (record === null || record.state === 'gone') {
    if (container === null) return { reply: 'nothing' };
    return claimed(stored ?? newRecord(at, { state: 'destroying', fence }), at, fence, container);
  }
  switch (record.state) {
    case 'ready':
      return record.container === container ? claimed(record, at, fence, container) : { reply: 'nothing' };
    case 'starting':
      return isExpired(record, at.now) ? claimed(record, at, fence, container) : { reply: 'wait' };
    case 'destroying':
      return { reply: 'underway' };
  }
};

export const confirm: Transition<ConfirmRequest, ConfirmReply> = (stored, at, request) => {
  const record = present(stored, at);
  const { container } = request;
  switch (request.kind) {
    case 'teardown':
      if (record === null) {
        const { fence, engine } = request;
        return mine(at, newRecord(at, { state: 'destroying', fence, container, engine }));
      }
      if (isMine(record, at, 'destroying', request.fence)) return mine(at, { ...record, expiresAt: leaseEnd(at) });
      break;
    case 'residue':
      if (isMine(record, at, 'starting', request.fence)) return mine(at, { ...record, expiresAt: leaseEnd(at) });
      break;
    case 'stray':
      if (record === null || record.state === 'gone') return mine(at);
      if (record.state === 'ready' && record.verified && record.container !== container) return mine(at);
      break;
  }
  return { reply: { answer: othersAnswer(record, container), life: at.life } };
};

function mine(at: Moment, record?: LeaseRecord): Step<ConfirmReply> {
  const reply = { answer: 'mine', life: at.life } as const;
  return record === undefined ? { reply } : { record, reply };
}

/** What a record that is not the remover's own says about the container. */
function othersAnswer(record: LeaseRecord | null, container: ContainerId): 'named' | 'starting' | 'taken' {
  if (record?.state === 'starting') return record.container === null ? 'starting' : 'taken';
  return isNamed(record, container) ? 'named' : 'taken';
}

type DropArgs = { readonly fence: Fence; readonly previous: Previous | null };

export const drop: Transition<DropArgs, 'dropped' | 'nothing'> = (stored, at, { fence, previous }) =>
  isMine(stored, at, 'destroying', fence)
    ? { record: asTombstone(stored, at, previous), reply: 'dropped' }
    : { reply: 'nothing' };

type EndArgs = { readonly container: ContainerId; readonly why: Previous };

export const end: Transition<EndArgs, 'ended' | 'nothing'> = (stored, at, { container, why }) =>
  isNamed(stored, container) && (stored.owner === at.owner || isExpired(stored, at.now))
    ? { record: asTombstone(stored, at, why), reply: 'ended' }
    : { reply: 'nothing' };
