import { BrokerError } from '../domain/errors.ts';
import type { Clock } from '../domain/timing.ts';
import type { RemoveHow } from './container-runtime.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';

const LOOK_AGAIN_MS = 50;

export interface RemovalOptions {
  readonly daemon: DockerDaemon;
  readonly clock: Clock;
  readonly stopGraceMs: number;
  /** True while a container has this name. Rejects when that cannot be told. */
  exists(name: string): Promise<boolean>;
}

/** Ends and removes containers by name, with their anonymous volumes. */
export class ContainerRemoval {
  readonly #daemon: DockerDaemon;
  readonly #clock: Clock;
  readonly #stopGraceMs: number;
  readonly #exists: (name: string) => Promise<boolean>;

  constructor({ daemon, clock, stopGraceMs, exists }: RemovalOptions) {
    this.#daemon = daemon;
    this.#clock = clock;
    this.#stopGraceMs = stopGraceMs;
    this.#exists = exists;
  }

  /** As the port's `remove`, of whatever has this name. */
  async remove(name: string, how: RemoveHow): Promise<'removed' | 'left'> {
    if (how === 'stop') await this.#stop(name);
    try {
      await this.#daemon.call(`remove container ${name}`, (docker, abortSignal) =>
        docker.getContainer(name).remove({ v: true, force: how !== 'onlyIfStopped', abortSignal } as object),
      );
      return 'removed';
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal?.status === 404) return 'removed';
      if (refusal?.status !== 409) throw error;
      if (isUnderway(refusal.message)) return this.#untilGone(name);
      if (how === 'onlyIfStopped') return 'left';
      throw error;
    }
  }

  /** Already stopped and already gone are what was wanted. A paused container is woken by its own signal. */
  async #stop(name: string): Promise<void> {
    const t = Math.ceil(this.#stopGraceMs / 1000);
    try {
      await this.#daemon.call(`stop container ${name}`, (docker, abortSignal) =>
        docker.getContainer(name).stop({ t, abortSignal }),
      );
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal?.status === 304 || refusal?.status === 404) return;
      if (refusal?.status === 409 && isUnderway(refusal.message)) return;
      throw error;
    }
  }

  /** Somebody else removes it: success is theirs and ours, once it is gone. */
  async #untilGone(name: string): Promise<'removed'> {
    const end = this.#clock.monotonic() + this.#daemon.timeoutMs;
    while (await this.#exists(name)) {
      if (this.#clock.monotonic() >= end) {
        throw new BrokerError('runtime_timeout', `container ${name} is still being removed by somebody else`);
      }
      await this.#clock.pause(LOOK_AGAIN_MS);
    }
    return 'removed';
  }
}

function isUnderway(message: string): boolean {
  return /already in progress|marked for removal/i.test(message);
}
