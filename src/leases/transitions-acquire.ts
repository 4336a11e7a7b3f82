import type { Previous } from '../domain/errors.ts';
import type { Identity } from '../domain/identity.ts';
import type { ContainerId, Fence, HoldId } from '../domain/ids.ts';
import { UNKNOWN_HOLD } from '../domain/ids.ts';
import { countHolds, isExpired, type LeaseRecord, withHold } from '../domain/sandbox.ts';
import type { ActivateRequest, LeasePolicy, StartReply, TakeReply, TakeRequest } from './lease-store.ts';
import {
  asStarting,
  isMine,
  isNamed,
  leaseEnd,
  newRecord,
  present,
  startReply,
  type Transition,
} from './transition.ts';

/** Sandboxes that count against the limits: starting, ready or destroying. */
export interface Usage {
  readonly fleet: number;
  /** Of the user who asks. */
  readonly user: number;
}

/** Which limit one more sandbox would exceed; null: none. A limit of 0 is none. */
export function limitReached({ maxSandboxes, maxPerUser }: LeasePolicy, usage: Usage): 'fleet' | 'user' | null {
  if (maxSandboxes > 0 && usage.fleet >= maxSandboxes) return 'fleet';
  return maxPerUser > 0 && usage.user >= maxPerUser ? 'user' : null;
}

/** What the store knows of the limits' use when a sandbox is asked for. */
export interface UsageAsked extends Usage {
  /** The sandbox that is asked for counts already: its container runs. */
  readonly counts: boolean;
  /** What runs without a record was counted in this life. */
  readonly knowsWhatRuns: boolean;
}

/** Why a new sandbox is not let in; null: it is. */
function refusal(policy: LeasePolicy, usage: UsageAsked, { behind }: TakeRequest): TakeReply | null {
  const unlimited = policy.maxSandboxes === 0 && policy.maxPerUser === 0;
  if (unlimited || usage.counts) return null;
  if (!usage.knowsWhatRuns) return { kind: 'uncounted' };
  const scope = behind ?? limitReached(policy, usage);
  return scope === null ? null : { kind: 'full', scope };
}

type TakeArgs = { readonly request: TakeRequest; readonly usage: UsageAsked };

/** `mismatch`: the record is of another identity. */
export const take: Transition<TakeArgs, TakeReply | 'mismatch'> = (stored, at, { request, usage }) => {
  const known = present(stored, at);
  if (known !== null && !agrees(known, request.identity)) return { reply: 'mismatch' };
  const fence = at.nextFence(stored?.fence, request.known);
  const { profile, userId, threadId } = request.identity;

  if (known === null || known.state === 'gone') {
    const refused = refusal(at.policy, usage, request);
    if (refused !== null) return { reply: refused };
    const about = { profile, userId, threadId, spec: request.spec, previous: stored?.previous ?? null };
    const record = newRecord(at, { state: 'starting', fence, ...about });
    return { record, reply: { kind: 'starting', ...startReply(record) } };
  }
  if (known.state === 'ready') {
    const until = at.now + at.policy.holdTtlMs;
    const taken = { ...known, profile, userId, threadId, owner: at.owner, fence, expiresAt: leaseEnd(at) };
    const record = { ...withHold(taken, fence, until, at.now), lastActiveAt: at.now };
    return { record, reply: { kind: 'ready', record, hold: fence, heldBefore: countHolds(known, at.now) > 0 } };
  }
  if (known.state === 'starting' && known.owner !== at.owner && !isExpired(known, at.now)) {
    return { reply: { kind: 'wait', record: known } };
  }
  const record = { ...asStarting(known, at, fence), profile, userId, threadId, spec: request.spec };
  return { record, reply: { kind: 'starting', ...startReply(record) } };
};

/** A record that was adopted without its identity takes the first one that comes; that it has the id was checked. */
function agrees(record: LeaseRecord, identity: Identity): boolean {
  return (['profile', 'userId', 'threadId'] as const).every(
    (part) => record[part] === null || record[part] === identity[part],
  );
}

export const activate: Transition<ActivateRequest, LeaseRecord | 'moved'> = (stored, at, request) => {
  if (!isMine(stored, at, 'starting', request.fence)) return { reply: 'moved' };
  const holds = new Map<HoldId, number>([[request.fence, at.now + request.holdMs]]);
  if (request.found) holds.set(UNKNOWN_HOLD, at.now + at.policy.holdTtlMs);
  const record: LeaseRecord = {
    ...stored,
    state: 'ready',
    since: request.since,
    container: request.container,
    engine: request.engine,
    url: request.url,
    expiresAt: leaseEnd(at),
    holds,
    idleSince: at.now,
    lastActiveAt: at.now,
    verified: !request.found,
    spec: request.spec,
    createdAt: request.createdAt ?? stored.createdAt,
  };
  return { record, reply: record };
};

export const verify: Transition<{ readonly container: ContainerId; readonly url: string }, LeaseRecord | 'moved'> = (
  stored,
  _at,
  { container, url },
) => {
  if (!isNamed(stored, container)) return { reply: 'moved' };
  const record = { ...stored, verified: true, url };
  return { record, reply: record };
};

type RestartArgs = { readonly container: ContainerId; readonly why: Previous | null };

export const restart: Transition<RestartArgs, StartReply | 'moved'> = (stored, at, { container, why }) => {
  if (!isNamed(stored, container)) return { reply: 'moved' };
  const record = { ...asStarting(stored, at, at.nextFence(stored.fence)), previous: why ?? stored.previous };
  return { record, reply: startReply(record) };
};

export const residue: Transition<{ readonly fence: Fence; readonly container: ContainerId }, StartReply | 'moved'> = (
  stored,
  at,
  { fence, container },
) => {
  if (!isMine(stored, at, 'starting', fence)) return { reply: 'moved' };
  const record = { ...stored, container, expiresAt: leaseEnd(at) };
  return { record, reply: startReply(record) };
};
