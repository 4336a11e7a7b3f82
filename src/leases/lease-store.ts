import type { Previous } from '../domain/errors.ts';
import type { ContainerId, EngineMark, Fence, HoldId, Life, OwnerId, SandboxId } from '../domain/ids.ts';
import type { LeaseRecord } from '../domain/sandbox.ts';
import type { HistoryStore } from './history-store.ts';
import type {
  ActivateRequest,
  AdoptRequest,
  Claim,
  ClaimCondition,
  ConfirmReply,
  ConfirmRequest,
  LeaseClaim,
  NewsListener,
  ReassertRequest,
  RenewReply,
  RunningContainer,
  Snapshot,
  Spare,
  SparePool,
  StartReply,
  TakeReply,
  TakeRequest,
  Unheld,
} from './lease-types.ts';

export type * from './lease-types.ts';

/**
 * The lease store, as one replica sees it: a handle is made for one owner, and "mine" below means that the record
 * carries this owner (and, where a fence is passed, that fence).
 *
 * - Every method is one atomic step in the store, judged by the store's clock. `readMany` and `renew` are atomic
 *   record by record.
 * - Every step first brings the record into the present life (see `intoLife`); only reads write nothing at all.
 * - A tombstone that has stood for a lease counts as no record, except for `read`, `readMany` and `page`.
 * - Every method rejects with `store_unavailable` when the store cannot answer in time. Such a call may have been
 *   carried out; sending it again is harmless (at worst a hold more, which runs out).
 * - A record that cannot be read, or that a newer version wrote, rejects with `record_unreadable` and is left as it
 *   is, except by `condemnByIntent`, which clears one that cannot be read. In batches it is reported for its id alone.
 * - Nothing else is thrown, save `identity_mismatch` by `take`. A refusal is a reply.
 */
export interface LeaseStore {
  readonly owner: OwnerId;
  /** False for a store that lives in this process: there are no peers, so a missing record needs no wait. */
  readonly seesPeers: boolean;
  /** What happened to each sandbox. */
  readonly history: HistoryStore;

  /**
   * Begins an acquire. Nothing known → `starting`, if capacity allows. `ready` → stays so, whoever owned it, plus a
   * hold for `holdTtlMs`. `destroying`, or a `starting` that is mine or expired → `starting`, and the container it
   * named is to be removed as residue. A peer's live `starting` → `wait`. Owner and fence are new in all but `wait`,
   * `full` and `uncounted`. Not idempotent: each call is one more handout.
   *
   * `uncounted`: there is a limit, and in this life nobody has counted the containers that run (see `census`). One that
   * counts already is never refused for capacity.
   */
  take(request: TakeRequest): Promise<TakeReply>;

  /**
   * My `starting` with this fence → `ready`, with a hold under the fence for `holdMs`. A container that was found
   * rather than made also gets an unknown hold and stays unverified. Anything else, also no record: `moved`.
   */
  activate(request: ActivateRequest): Promise<LeaseRecord | 'moved'>;

  /** Notes that the container was seen fit, and where it answers, if a `ready` record still names it. Idempotent. */
  verify(id: SandboxId, container: ContainerId, url: string): Promise<LeaseRecord | 'moved'>;

  /**
   * `ready` that names this container, seen dead → my `starting` with a new fence; of two that try, one wins. `why` it
   * ended becomes `previous`; null keeps the one that is there.
   */
  restart(id: SandboxId, container: ContainerId, why: Previous | null): Promise<StartReply | 'moved'>;

  /** My `starting` names the stopped container that holds its name, to be removed as residue. Idempotent. */
  residue(id: SandboxId, fence: Fence, container: ContainerId): Promise<StartReply | 'moved'>;

  /** The hold counts again for `holdTtlMs`, also one that ran out or was forgotten, if it is of this container. */
  keepalive(id: SandboxId, hold: HoldId): Promise<LeaseRecord | 'hold_lost' | 'not_found'>;

  /**
   * Ends exactly that hold; the last one starts the idle clock. Idempotent: an unknown hold changes nothing. The record
   * that is answered has only holds that count. `not_found` where no sandbox is.
   */
  release(id: SandboxId, hold: HoldId): Promise<LeaseRecord | 'not_found'>;

  /**
   * Expired `ready` → mine, all else unchanged. No record, or an expired `starting` whose name a running container
   * has → `ready` naming that container, with a new fence and an unknown hold, unverified: the start may have found
   * it rather than made it, or the store may have gone back to before its activation.
   */
  adopt(request: AdoptRequest): Promise<LeaseRecord | 'refused'>;

  /**
   * Announces a removal. A refused claim leaves the record as it was. The same claim twice by one owner is one claim:
   * a record that is `destroying`, mine and of this fence answers with the same claim again.
   */
  claim(id: SandboxId, fence: Fence, condition: ClaimCondition): Promise<Claim | 'refused'>;

  /**
   * Announces a removal that a caller asked for, with or without holds, whoever owns it: `ready` that names this
   * container, or an expired `starting` (naming `container` or its residue); with no record, a tombstone or an
   * unreadable one: the container found under the name. Live `starting` → `wait`. `destroying` → `underway`.
   * `nothing` when the record names another container, or there is neither record nor container.
   */
  condemnByIntent(id: SandboxId, container: ContainerId | null): Promise<Claim | 'wait' | 'underway' | 'nothing'>;

  /**
   * The question before a removal, asked after the container was condemned:
   * - `mine`: nobody can come to hold it any more. My marker was refreshed, or written again if the record is gone.
   * - `named`: a `ready` record names this container; somebody has it.
   * - `starting`: a start that names no container yet may have found this one; ask again, for a lease at most.
   * - `taken`: somebody else finishes it, or it is finished.
   */
  confirm(request: ConfirmRequest): Promise<ConfirmReply>;

  /** My `destroying` of this fence → tombstone; otherwise nothing happens. Idempotent. */
  drop(id: SandboxId, fence: Fence, previous: Previous | null): Promise<'dropped' | 'nothing'>;

  /** A container that ended by itself: `ready` naming it, mine or expired → tombstone that tells why. */
  end(id: SandboxId, container: ContainerId, why: Previous): Promise<'ended' | 'nothing'>;

  /**
   * Extends my leases, `starting` and `ready`, never `destroying`; and keeps the life alive, also with an empty batch.
   * `lapsed`: the store went back (no record, one with a smaller fence than mine, or my own `starting` of what I
   * remember `ready`). `lost`: anything else. Never
   * takes anything again. At most 200 ids a call.
   */
  renew(leases: readonly LeaseClaim[]): Promise<ReadonlyMap<SandboxId, RenewReply>>;

  /**
   * After `lapsed`: writes the record back as `ready`, unverified, with an unknown hold and a new fence, where there is
   * none, an older one, or my `starting` of this fence.
   */
  reassert(request: ReassertRequest): Promise<LeaseRecord | 'refused'>;

  /** My leases among these end now, `starting` ones too: a peer may adopt or take them at once. Idempotent. */
  handover(ids: readonly SandboxId[]): Promise<void>;

  /**
   * Puts a started, ready container at the disposal of whoever comes next. Idempotent by container; one that was claimed
   * or retired within the last hour is not added again.
   */
  addSpare(spare: Spare): Promise<void>;

  /**
   * My `starting` of this fence takes the oldest spare of this profile and spec out of the pool. Null: there is none. The
   * record does not name it: a store that comes back as it was at this moment must not take a sandbox in use for residue.
   */
  claimSpare(id: SandboxId, fence: Fence, profile: string, spec: string): Promise<Spare | null | 'moved'>;

  /** Nobody can claim this spare any more: it is about to be removed. False: a start has claimed it. Idempotent. */
  retireSpare(container: ContainerId): Promise<boolean>;

  /** The spares that can be claimed. */
  pool(): Promise<SparePool>;

  /** True: this replica, and no other, refills the pool, for a lease from now. Idempotent: asking again prolongs it. */
  tendSpares(): Promise<boolean>;
  /** A peer may tend the pool at once. Idempotent. */
  leaveSpares(): Promise<void>;

  /** The present life, in which the list for a census is to be made. */
  beginCensus(): Promise<Life>;

  /**
   * What runs counts against the limits, also without a record: a store that lost its keys admits no more than before.
   * Of what has no record, or a tombstone that has stood for its lease (a younger one is newer than the list), every one
   * of these counts; of what has no record or any tombstone, what is not among them counts no more.
   * `running`: listed in the life `began`; another one meanwhile → `moved`, and this one is still to be counted.
   */
  census(began: Life, running: readonly RunningContainer[]): Promise<'counted' | 'moved'>;

  /**
   * What nobody holds, at most `limit` of the fleet's, or of one user's. Never changes anything: whether one may go is
   * judged by its claim. In the first moments of a life some that nobody holds may be missing.
   */
  unheld(userId: string | null, limit: number): Promise<Unheld>;

  /**
   * Tells of what others and this replica did, soon afterwards, until the returned function is called. Best effort:
   * some news may never arrive, so whoever waits for it asks again after a while.
   */
  listen(listener: NewsListener): () => void;

  /** Never changes anything. Tombstones are returned too, for as long as they tell why. */
  read(id: SandboxId): Promise<Snapshot>;
  /** As `read`, in the order asked, in one round trip per 200 ids. */
  readMany(ids: readonly SandboxId[]): Promise<readonly Snapshot[]>;
  /** Records of the deployment in the order of their ids, after `after`; `next` is null at the end. */
  page(
    after: SandboxId | null,
    limit: number,
  ): Promise<{ readonly items: readonly Snapshot[]; readonly next: SandboxId | null }>;

  /**
   * The first mark that a deployment's store sees is remembered; returns the remembered one. A replica that sees
   * another engine must not conclude anything from it.
   */
  settleEngine(mark: EngineMark): Promise<EngineMark>;

  /** Answers when the store does. */
  ping(): Promise<void>;
  /** Ends connections and timers. Memoised; later calls of other methods reject with `store_unavailable`. */
  close(): Promise<void>;
}
