import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { BrokerError, hasCode, messageOf } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock } from '../domain/timing.ts';
import { withDeadline } from './deadline.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';
import { PullProgress } from './pull-progress.ts';
import type { Redaction } from './redaction.ts';

const TELL_EVERY_MS = 3_000;

export interface ImagesOptions {
  readonly daemon: DockerDaemon;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly redaction: Redaction;
  /** A pull that says nothing for so long has failed, in milliseconds; one that moves may take any time. */
  readonly pullIdleMs: number;
}

/** The images of profiles: asked for, and pulled once for any number of callers. */
export class Images {
  readonly #daemon: DockerDaemon;
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #redaction: Redaction;
  readonly #pullIdleMs: number;
  readonly #pulls = new Map<string, Promise<void>>();

  constructor({ daemon, clock, emit, redaction, pullIdleMs }: ImagesOptions) {
    this.#daemon = daemon;
    this.#clock = clock;
    this.#emit = emit;
    this.#redaction = redaction;
    this.#pullIdleMs = pullIdleMs;
  }

  async has({ image }: Profile): Promise<boolean> {
    try {
      await this.#daemon.call(`look for image ${image}`, (docker, abortSignal) => inspect(docker, image, abortSignal));
      return true;
    } catch (error) {
      if (refusalOf(error)?.status === 404) return false;
      throw error;
    }
  }

  /** Rejects with `image_unavailable` if it cannot be had. */
  async ensure(profile: Profile): Promise<void> {
    if (profile.pull !== 'always' && (await this.has(profile))) return;
    if (profile.pull === 'never') {
      throw new BrokerError(
        'image_unavailable',
        `image ${profile.image} is not in the engine, and profile ${profile.name} says not to pull it: load or build it there`,
      );
    }
    await this.#sharedPull(profile);
  }

  #sharedPull(profile: Profile): Promise<void> {
    const key = JSON.stringify([profile.image, profile.registryAuth]);
    const running = this.#pulls.get(key);
    if (running !== undefined) return running;
    const pull = this.#pull(profile).finally(() => this.#pulls.delete(key));
    this.#pulls.set(key, pull);
    return pull;
  }

  async #pull(profile: Profile): Promise<void> {
    const { image } = profile;
    let stream: NodeJS.ReadableStream | null = null;
    try {
      this.#tell(image, 'begins');
      const progress = new PullProgress();
      const idle = (): Error => new Error(`nothing moved for ${this.#pullIdleMs} ms`);
      stream = await this.#daemon.begin(
        `pull image ${image}`,
        (docker, abortSignal) => docker.pull(image, { ...credentials(profile), abortSignal }),
        this.#pullIdleMs,
      );
      const chunks = stream[Symbol.asyncIterator]();
      for (let told = this.#clock.monotonic(); ; ) {
        const next = await withDeadline(this.#pullIdleMs, () => chunks.next(), idle, this.#daemon.closed);
        if (next.done === true) break;
        progress.read(next.value as Buffer);
        if (progress.error !== null) throw new Error(progress.error);
        if (this.#clock.monotonic() - told < TELL_EVERY_MS) continue;
        told = this.#clock.monotonic();
        this.#tell(image, progress.summary());
      }
      if (!(await this.has(profile))) throw new Error('the pull ended without it');
      this.#tell(image, 'done');
    } catch (error) {
      this.#tell(image, 'failed');
      throw this.#failure(profile, error);
    } finally {
      // Not by aborting: that ends the connection with an error which nobody listens to once the reply is complete.
      (stream as Readable | null)?.destroy();
    }
  }

  #failure(profile: Profile, error: unknown): BrokerError {
    // An engine that says nothing while it begins is waiting for the registry.
    if (hasCode(error, 'runtime_unavailable') && refusalOf(error) === null) return error;
    const words = this.#redaction.apply(refusalOf(error)?.message ?? messageOf(error));
    return new BrokerError('image_unavailable', `image ${profile.image} cannot be pulled: ${words}`);
  }

  #tell(image: string, progress: string): void {
    this.#emit({ type: 'image-pull', image, progress });
  }
}

/** The client's own `inspect` cannot be aborted: each one that hangs would keep its connection. */
function inspect({ modem }: Docker, image: string, abortSignal: AbortSignal): Promise<unknown> {
  const statusCodes = { 200: true, 404: 'no such image', 500: 'server error' };
  return new Promise((resolve, reject) => {
    modem.dial(
      { path: `/images/${image}/json`, method: 'GET', statusCodes, abortSignal },
      (error: unknown, reply: unknown) => (error ? reject(error) : resolve(reply)),
    );
  });
}

function credentials({ image, registryAuth }: Profile): object {
  if (registryAuth === null) return {};
  const [first = ''] = image.split('/');
  const named = image.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  return { authconfig: { ...registryAuth, serveraddress: named ? first : 'https://index.docker.io/v1/' } };
}
