import { asEngineMark, asLife, type Fence, formatFence, type SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { Claim, ConfirmReply, FoundContainer, Spare, SparePool, StartReply, TakeReply } from './lease-store.ts';
import { decodeValues, unreadable } from './record-fields.ts';
import { identityMismatch, unreadableError } from './refusals.ts';
import { isUnreadable } from './snapshot.ts';
import { claimOf, startReply } from './transition.ts';

/** What a script replied: a word, then what belongs to it. */
type Reply = readonly [word: string, ...rest: readonly unknown[]];

/** The one place where replies of the scripts become what the port promises. */
export class RedisReply {
  readonly word: string;
  readonly #id: SandboxId;
  readonly #rest: readonly unknown[];

  /** Throws `record_unreadable` for a record that could not be read, `identity_mismatch` for one of somebody else. */
  constructor(id: SandboxId, reply: unknown) {
    const [word, ...rest] = reply as Reply;
    if (word === 'unreadable') throw unreadableError(id, reasonOf(id, rest));
    if (word === 'mismatch') throw identityMismatch(id);
    this.word = word;
    this.#id = id;
    this.#rest = rest;
  }

  record(): LeaseRecord {
    const record = decodeValues(this.#id, this.#rest[0] as string[]);
    if (isUnreadable(record)) throw unreadableError(this.#id, record);
    return record;
  }

  recordOr<Refusal extends string>(): LeaseRecord | Refusal {
    return this.word === 'record' ? this.record() : (this.word as Refusal);
  }

  startOr<Refusal extends string>(): StartReply | Refusal {
    return this.word === 'record' ? startReply(this.record()) : (this.word as Refusal);
  }

  claimOr<Refusal extends string>(): Claim | Refusal {
    return this.word === 'claim' ? claimOf(this.record()) : (this.word as Refusal);
  }

  taken(): TakeReply {
    switch (this.word) {
      case 'uncounted':
        return { kind: 'uncounted' };
      case 'full':
        return { kind: 'full', scope: this.#rest[0] as 'fleet' | 'user' };
      case 'wait':
        return { kind: 'wait', record: this.record() };
      case 'ready': {
        const record = this.record();
        return { kind: 'ready', record, hold: record.fence, heldBefore: this.#rest[1] === '1' };
      }
      default:
        return { kind: 'starting', ...startReply(this.record()) };
    }
  }

  confirmed(): ConfirmReply {
    return { answer: this.word as ConfirmReply['answer'], life: asLife(this.#rest[0] as string) };
  }

  spare(): Spare | null | 'moved' {
    if (this.word === 'moved') return 'moved';
    return this.word === 'none' ? null : (JSON.parse(this.#rest[0] as string) as Spare);
  }
}

function reasonOf(id: SandboxId, values: readonly unknown[]) {
  const entry = decodeValues(id, values as (string | null)[]);
  return isUnreadable(entry) ? entry : unreadable('its fields are not spelled as this version does');
}

export const digits = (value: number): string => value.toFixed(0);
export const textOf = (value: string | null): string => value ?? '';
export const timeOf = (value: number | null): string => (value === null ? '' : digits(value));

/** A container that was found, in the order of `describe_found`. */
export function foundArgs(found: FoundContainer): readonly string[] {
  const { container, engine, url, since, profile, userId, threadId, spec, createdAt } = found;
  const texts = [profile, userId, threadId, spec].map(textOf);
  return [container, engine, textOf(url), formatFence(since), ...texts, timeOf(createdAt)];
}

export const wordOf = (reply: unknown): string => (reply as Reply)[0];

export function poolOf(reply: unknown): SparePool {
  const [sandboxes, ...spares] = reply as [number, ...string[]];
  return { sandboxes, spares: spares.map((spare) => JSON.parse(spare) as Spare) };
}

export const markOf = (reply: unknown) => asEngineMark((reply as string[])[0]!);
export const fenceArg = (fence: Fence | undefined): string => formatFence(fence ?? (0 as Fence));
