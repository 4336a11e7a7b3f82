import { type HoldId, UNKNOWN_HOLD } from '../domain/ids.ts';
import { type LeaseRecord, withHold, withoutExpiredHolds } from '../domain/sandbox.ts';
import { present, type Transition } from './transition.ts';

type OfHold = { readonly hold: HoldId };

export const keepalive: Transition<OfHold, LeaseRecord | 'hold_lost' | 'not_found'> = (stored, at, { hold }) => {
  const known = present(stored, at);
  if (known === null || known.state === 'gone' || known.state === 'destroying') return { reply: 'not_found' };
  if (known.state === 'starting' || hold < known.since || hold === UNKNOWN_HOLD) return { reply: 'hold_lost' };
  const held = withHold(known, hold, at.now + at.policy.holdTtlMs, at.now);
  const record = { ...held, lastActiveAt: at.now };
  return { record, reply: record };
};

/** A hold that has run out is as unknown as one that never was: the idle clock stays where it is. */
export const release: Transition<OfHold, LeaseRecord | 'not_found'> = (stored, at, { hold }) => {
  const known = present(stored, at);
  if (known === null || known.state === 'gone') return { reply: 'not_found' };
  const current = withoutExpiredHolds(known, at.now);
  if (known.state !== 'ready' || hold === UNKNOWN_HOLD || !current.holds.has(hold)) return { reply: current };
  const holds = new Map(current.holds);
  holds.delete(hold);
  const idleSince = holds.size === 0 ? at.now : current.idleSince;
  const record = { ...current, holds, idleSince, lastActiveAt: at.now };
  return { record, reply: record };
};
