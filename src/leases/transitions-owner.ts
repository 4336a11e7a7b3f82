import { type Fence, UNKNOWN_HOLD } from '../domain/ids.ts';
import { isExpired, type LeaseRecord } from '../domain/sandbox.ts';
import type { AdoptRequest, FoundContainer, LeaseClaim, ReassertRequest, RenewReply } from './lease-store.ts';
import { isMine, leaseEnd, type Moment, newRecord, present, type Step, type Transition } from './transition.ts';

export const adopt: Transition<AdoptRequest, LeaseRecord | 'refused'> = (stored, at, { container }) => {
  const known = present(stored, at);
  if (known === null) {
    if (container === null) return { reply: 'refused' };
    return found(at, container, at.nextFence(stored?.fence, container.since));
  }
  if (!isExpired(known, at.now)) return { reply: 'refused' };
  if (known.state === 'starting' && container !== null) {
    const { record } = found(at, container, at.nextFence(known.fence, container.since));
    const { profile, userId, threadId, previous } = known;
    const adopted = { ...record, profile, userId, threadId, previous };
    return { record: adopted, reply: adopted };
  }
  if (known.state !== 'ready') return { reply: 'refused' };
  const record = { ...known, owner: at.owner, expiresAt: leaseEnd(at) };
  return { record, reply: record };
};

export const reassert: Transition<ReassertRequest, LeaseRecord | 'refused'> = (stored, at, request) => {
  const known = present(stored, at);
  const unactivated = isMine(known, at, 'starting', request.fence);
  if (known !== null && known.fence >= request.fence && !unactivated) return { reply: 'refused' };
  return found(at, request, at.nextFence(stored?.fence, request.fence, request.since));
};

/** A container that runs and whose record is missing: somebody may be using it, and nobody has looked at it. */
function found(at: Moment, about: FoundContainer, fence: Fence): Required<Step<LeaseRecord>> {
  const { container, engine, url, since, profile, userId, threadId, spec } = about;
  const record = newRecord(at, {
    state: 'ready',
    fence,
    ...{ container, engine, url, since, profile, userId, threadId, spec },
    createdAt: about.createdAt ?? at.now,
    holds: new Map([[UNKNOWN_HOLD, at.now + at.policy.holdTtlMs]]),
  });
  return { record, reply: record };
}

export const renew: Transition<LeaseClaim, RenewReply> = (stored, at, { fence, ready = false }) => {
  const known = present(stored, at);
  if (known === null || known.fence < fence) return { reply: 'lapsed' };
  if (ready && isMine(known, at, 'starting', fence)) return { reply: 'lapsed' };
  const extendable = known.state === 'starting' || known.state === 'ready';
  if (known.owner !== at.owner || known.fence !== fence || !extendable) return { reply: 'lost' };
  return { record: { ...known, expiresAt: leaseEnd(at) }, reply: 'renewed' };
};

/** Ends the lease of this owner's record. A lease that has ended already stays as it is. */
export const handover: Transition<void, void> = (stored, at) => {
  const live = stored !== null && stored.state !== 'gone' && !isExpired(stored, at.now);
  if (!live || stored.owner !== at.owner) return { reply: undefined };
  return { record: { ...stored, expiresAt: at.now }, reply: undefined };
};
