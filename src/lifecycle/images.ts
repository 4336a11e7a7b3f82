import { BrokerError, messageOf } from '../domain/errors.ts';
import type { Profile } from '../domain/profile.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';

export interface ImagesOptions {
  readonly runtime: Pick<ContainerRuntime, 'hasImage' | 'ensureImage'>;
  readonly profiles: ReadonlyMap<string, Profile>;
}

/** Which profiles' images are in the engine. Those that may be pulled are pulled ahead of the first acquire. */
export class Images {
  readonly #options: ImagesOptions;
  readonly #missing = new Map<string, string>();
  readonly #present = new Set<string>();

  constructor(options: ImagesOptions) {
    this.#options = options;
  }

  /** True once at least one profile can be started. */
  get anyPresent(): boolean {
    return this.#present.size > 0;
  }

  /** What is missing and why, a sentence; null when every image is there. */
  get problem(): string | null {
    return this.#missing.size === 0 ? null : [...this.#missing.values()].join(' ');
  }

  /** Looks at every profile. Rejects with the last error if no profile has its image. */
  async pass(): Promise<void> {
    let last: unknown = null;
    for (const profile of this.#options.profiles.values()) {
      try {
        await this.#prepare(profile);
        this.#missing.delete(profile.name);
        this.#present.add(profile.name);
      } catch (error) {
        last = error;
        this.#missing.set(profile.name, messageOf(error));
      }
    }
    if (!this.anyPresent) throw last;
  }

  async #prepare(profile: Profile): Promise<void> {
    const { runtime } = this.#options;
    if (await runtime.hasImage(profile)) return;
    this.#present.delete(profile.name);
    if (profile.pull !== 'never') return runtime.ensureImage(profile);
    throw new BrokerError(
      'image_unavailable',
      `Image ${profile.image} of profile ${profile.name} is not in the engine, and its pull is "never". Build or load it.`,
    );
  }
}
