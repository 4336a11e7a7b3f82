import type { ContainerId, HoldId } from '../../src/domain/ids.ts';
import type { LeaseRecord } from '../../src/domain/sandbox.ts';
import type { TakeReply } from '../../src/leases/lease-store.ts';
import type { Handout } from '../../src/lifecycle/handout.ts';
import type { Fingerprint } from './fingerprint.ts';
import { ID, type Scene } from './scene.ts';

/** A client that was answered and has not left. */
export interface Client {
  readonly container: ContainerId;
  readonly hold: HoldId;
}

/** By these an acquire gives up the hold that it took, or begins anew. `activate` and `take` may also be handouts. */
const GIVES_UP = new Set(['take', 'activate', 'restart', 'release']);

const isHandout = (method: string, reply: unknown): boolean =>
  typeof reply === 'object' && (method === 'activate' || (method === 'take' && (reply as TakeReply).kind === 'ready'));

const STOPPED = new Set(['created', 'exited', 'dead']);

/**
 * Watches every step of a run:
 * S1 nobody but an explicit destroy removes a running container that some client holds;
 * S2 a container runs and is not condemned when it is handed out, unless it was destroyed on purpose;
 * S3 never two containers of one id held at once;
 * S4 a sandbox whose container is gone does not come back as ready by itself, while the store lost nothing;
 * S5 the keepalive of a client whose container the record names is accepted.
 * S2 is not judged where an explicit destroy takes part.
 */
export class Judge {
  readonly clients = new Set<Client>();
  /** Destroyed on purpose, or about to be. */
  readonly deleted = new Set<ContainerId>();
  violation: string | null = null;
  readonly #pending = new Set<number>();
  /** The store has lost something: it may bring back what is gone. */
  storeFailed = false;
  readonly #scene: Scene;
  readonly #explicit: boolean;

  constructor(scene: Scene, explicit: boolean) {
    this.#scene = scene;
    this.#explicit = explicit;
  }

  report(violation: string): void {
    this.violation ??= violation;
  }

  /** An acquire holds a sandbox and is about to answer, which takes it less time than a hold lasts. */
  get answering(): boolean {
    return [...this.#pending].some((replica) => !this.#scene.crashed.has(replica));
  }

  isHeld(container: ContainerId): boolean {
    for (const client of this.clients) if (client.container === container) return true;
    return false;
  }

  /** The running containers, before a step. */
  before(): readonly ContainerId[] {
    return this.#scene.engine.containers.filter(({ state }) => !STOPPED.has(state)).map(({ id }) => id);
  }

  after(
    replica: number,
    method: string,
    args: readonly unknown[],
    reply: unknown,
    running: readonly ContainerId[],
  ): void {
    const { engine, scheduler } = this.#scene;
    if (isHandout(method, reply)) this.#pending.add(replica);
    else if (GIVES_UP.has(method)) this.#pending.delete(replica);
    if (method === 'condemnByIntent' && typeof reply === 'object' && args[1] !== null) {
      this.deleted.add(args[1] as ContainerId);
    }
    if (method === 'remove') {
      const byIntent = scheduler.current?.actor.startsWith('destroy') === true && !scheduler.free;
      for (const id of running) {
        if (engine.find(id) !== undefined) continue;
        if (byIntent) this.deleted.add(id);
        if (this.isHeld(id) && !this.deleted.has(id))
          this.report(`S1 ${short(id)} was removed while a client holds it`);
      }
    }
    if (method === 'reassert' && typeof reply === 'object' && !this.storeFailed) {
      const { container } = reply as LeaseRecord;
      if (container !== null && engine.find(container) === undefined)
        this.report(`S4 ${short(container)} is gone, and was written back as ready`);
    }
  }

  /** The answer reaches its caller, who is a client from now on; null: what it was for was destroyed meanwhile. */
  answer(replica: number, { record: { container }, hold }: Handout): Client | null {
    this.#pending.delete(replica);
    if (container === null) throw new Error('handed out without a container');
    if (this.deleted.has(container)) return null;
    const found = this.#scene.engine.find(container);
    const record = this.#scene.record();
    const named = record?.state === 'ready' && record.container === container;
    const condemned = found?.name.includes('-condemned-') === true;
    if (!this.#explicit && (found === undefined || STOPPED.has(found.state) || (condemned && !named))) {
      this.report(`S2 ${short(container)} was handed out, but ${found === undefined ? 'is gone' : found.state}`);
    }
    return this.arrives(container, hold);
  }

  arrives(container: ContainerId, hold: HoldId): Client {
    const client = { container, hold };
    this.clients.add(client);
    const { engine } = this.#scene;
    const held = new Set([...this.clients].map((known) => known.container));
    const running = [...held].filter((id) => !this.deleted.has(id) && !STOPPED.has(engine.find(id)?.state ?? 'dead'));
    if (running.length > 1) this.report(`S3 held at once: ${running.map(short).join(', ')}`);
    return client;
  }

  /** The clients whose container is the record's say that they are still there. */
  async keepalive(): Promise<void> {
    const { client: store } = this.#scene;
    const record = this.#scene.record();
    if (record?.state !== 'ready') return;
    for (const { container, hold } of this.clients) {
      if (container !== record.container) continue;
      const reply = await store.keepalive(ID, hold);
      if (typeof reply === 'string') this.report(`S5 the keepalive of ${hold} for ${short(container)}: ${reply}`);
    }
  }

  addTo(hash: Fingerprint): void {
    for (const { container, hold } of this.clients) hash.text(container).number(hold);
    for (const container of this.deleted) hash.text(container);
    hash.number(this.clients.size).number(this.deleted.size).any(this.storeFailed);
  }
}

/** The part of a fake container's id that tells it from others. */
export const short = (container: ContainerId): string => `c${container.slice(9, 12)}`;
