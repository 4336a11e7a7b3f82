import { BrokerError, messageOf } from '../domain/errors.ts';
import { asContainerId, type ContainerId } from '../domain/ids.ts';
import type { Profile } from '../domain/profile.ts';
import type { Clock } from '../domain/timing.ts';
import type { ContainerFinder } from './container-finder.ts';
import { containerSpec } from './container-spec.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';
import type { DeploymentNetwork } from './network.ts';
import { describeEnd, postMortem } from './post-mortem.ts';
import { type ReadinessLook, waitUntilReady } from './readiness.ts';
import type { Redaction } from './redaction.ts';
import { sightingOf } from './sighting.ts';

/** The engine chooses a port before it is sure to get it; each start makes it choose another. */
const PORT_TRIES = 5;
const PORT_REFUSED = /port is already allocated|address already in use/i;
const NETWORK_LOST = /network \S+ not found|could not find (?:a )?network/i;
/** What the last log lines may cost an error that is due already. */
const LAST_WORDS_MS = 1_000;

export interface ContainerStartOptions {
  readonly daemon: DockerDaemon;
  readonly finder: ContainerFinder;
  readonly network: DeploymentNetwork;
  readonly clock: Clock;
  readonly redaction: Redaction;
  readonly deployment: string;
  /** Where ports are published; null: not at all. */
  readonly bindHost: string | null;
}

/** A container's way from a profile to a url that answers. */
export class ContainerStart {
  readonly #options: ContainerStartOptions;

  constructor(options: ContainerStartOptions) {
    this.#options = options;
  }

  /** Null: the name is taken. */
  async create(name: string, labels: Readonly<Record<string, string>>, profile: Profile): Promise<ContainerId | null> {
    const { daemon, network, bindHost } = this.#options;
    const spec = containerSpec({ name, labels, profile, network: await network.ensure(), bindHost });
    try {
      const container = await daemon.call(`create container ${name}`, (docker, abortSignal) =>
        // Told apart, or the client would write the whole body, environment included, into the query.
        docker.createContainer({ _query: { name: spec.name }, _body: spec.body, abortSignal } as object),
      );
      if (typeof container.id === 'string') return asContainerId(container.id);
      throw new BrokerError('runtime_unavailable', `the container engine named no container: create ${name}`);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === null) throw error;
      if (refusal.status === 409) return null;
      if (refusal.status === 404 && /no such image/i.test(refusal.message)) {
        throw new BrokerError(
          'image_unavailable',
          `image ${profile.image} is not in the engine: pull, load or build it`,
        );
      }
      throw this.#failed(`container ${name} cannot be created`, refusal.message, profile);
    }
  }

  async start(container: ContainerId): Promise<void> {
    const { daemon, network } = this.#options;
    const short = container.slice(0, 12);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await daemon.call(`start container ${short}`, (docker, abortSignal) =>
          docker.getContainer(container).start({ abortSignal }),
        );
        return;
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal === null) throw error;
        if (refusal.status === 304) return;
        if (PORT_REFUSED.test(refusal.message) && attempt < PORT_TRIES) continue;
        if (NETWORK_LOST.test(refusal.message)) network.forget();
        throw this.#failed(`container ${short} cannot be started`, refusal.message);
      }
    }
  }

  async waitReady(container: ContainerId, profile: Profile, deadlineMs: number): Promise<{ readonly url: string }> {
    const url = await waitUntilReady({
      clock: this.#options.clock,
      profile,
      deadlineMs,
      container: container.slice(0, 12),
      look: (limitMs) => this.#lookWhileWaiting(container, limitMs),
      describe: () => this.#lastWords(container),
    });
    return { url };
  }

  async #lookWhileWaiting(container: ContainerId, limitMs: number): Promise<ReadinessLook> {
    try {
      const found = await this.#options.finder.find({ container }, limitMs);
      const sighting = sightingOf(found);
      if (sighting.kind === 'gone' || sighting.kind === 'stopped') return { kind: 'ended' };
      if (sighting.kind === 'unknown') return { kind: 'not-yet', because: messageOf(sighting.cause) };
      const probeUrl = found.kind === 'ours' ? found.probeUrl : null;
      const { url } = sighting.container;
      if (url === null || probeUrl === null) return { kind: 'not-yet', because: 'it has no address yet' };
      return { kind: 'running', url, probeUrl };
    } catch (error) {
      return { kind: 'not-yet', because: messageOf(error) };
    }
  }

  async #lastWords(container: ContainerId): Promise<string> {
    try {
      return describeEnd(await postMortem(this.#options, container, LAST_WORDS_MS));
    } catch (error) {
      return `its log cannot be read: ${messageOf(error)}`;
    }
  }

  #failed(what: string, words: string, profile?: Profile): BrokerError {
    const environment = Object.entries(profile?.environment ?? {}).map(([key, value]) => `${key}=${value}`);
    return new BrokerError('sandbox_start_failed', `${what}: ${this.#options.redaction.apply(words, environment)}`);
  }
}
