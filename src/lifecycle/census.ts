import type { Container } from '../domain/container.ts';
import { BrokerError, hasCode, messageOf } from '../domain/errors.ts';
import type { Life } from '../domain/ids.ts';
import { spareId } from '../domain/names.ts';
import type { LeaseStore, RunningContainer } from '../leases/lease-store.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { Engine } from './engine.ts';

export interface CensusOptions {
  readonly store: Pick<LeaseStore, 'beginCensus' | 'census'>;
  readonly runtime: Pick<ContainerRuntime, 'list'>;
  readonly engine: Engine;
  /** Without any limit nothing is counted. */
  readonly limited: boolean;
}

const OVER = new Set<Container['state']>(['exited', 'dead', 'removing']);

/**
 * Tells the store which containers run, so that the limits hold for those whose records it has lost. Spares are not
 * among them: they give way when the capacity is needed.
 */
export class Census {
  readonly #options: CensusOptions;
  #underWay: Promise<void> | null = null;

  constructor(options: CensusOptions) {
    this.#options = options;
  }

  /** The life in which the list is made; null: nothing needs to be counted. To be called before the list. */
  async begin(): Promise<Life | null> {
    return this.#options.limited ? this.#options.store.beginCensus() : null;
  }

  /** Counts what the list shows. In a life that has begun since, the store asks for another count. */
  async note(began: Life | null, containers: readonly Container[]): Promise<void> {
    if (began !== null) await this.#options.store.census(began, containers.flatMap(running));
  }

  /**
   * Lists and counts; callers at the same time share one. Rejects with `runtime_unavailable` when the engine does not
   * answer: nobody knows then whether there is room.
   */
  take(): Promise<void> {
    this.#underWay ??= this.#take().finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  async #take(): Promise<void> {
    const began = await this.begin();
    await this.note(began, await this.#list());
  }

  async #list(): Promise<readonly Container[]> {
    const { runtime, engine } = this.#options;
    try {
      await engine.mark();
      return await runtime.list();
    } catch (error) {
      if (!hasCode(error, 'runtime_timeout')) throw error;
      throw new BrokerError('runtime_unavailable', `Which sandboxes run cannot be told: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

/** One that was created and not yet started is about to run; one that is condemned runs until it is removed. */
function running({ id, role, state, labels }: Container): readonly RunningContainer[] {
  const isSandbox = role.kind === 'sandbox' || (role.kind === 'condemned' && role.id !== spareId(id));
  return isSandbox && !OVER.has(state) ? [{ id: role.id, userId: labels.userId }] : [];
}
