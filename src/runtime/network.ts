import { createHash } from 'node:crypto';
import { BrokerError } from '../domain/errors.ts';
import type { Clock, NewId } from '../domain/timing.ts';
import type { DockerDaemon } from './docker-daemon.ts';
import { deploymentFilter, isOfDeployment, LABEL } from './labels.ts';

export interface DeploymentNetworkOptions {
  readonly daemon: DockerDaemon;
  readonly deployment: string;
  /** The network that the configuration names; null: one of the deployment's own. */
  readonly configured: string | null;
  readonly newId: NewId;
  readonly clock: Pick<Clock, 'pause'>;
}

interface ListedNetwork {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly Labels?: Record<string, string> | null;
}

/** An older network that is being made in the same moment may be listed later than a younger one. */
const SETTLE_MS = 250;

/**
 * The network that sandboxes are put on. A deployment's own is a bridge whose containers cannot reach each other. It
 * stays when the broker ends, like the mark: replicas come and go.
 */
export class DeploymentNetwork {
  readonly #daemon: DockerDaemon;
  readonly #deployment: string;
  readonly #configured: string | null;
  readonly #newId: NewId;
  readonly #clock: Pick<Clock, 'pause'>;
  #settled: Promise<string> | null = null;

  constructor({ daemon, deployment, configured, newId, clock }: DeploymentNetworkOptions) {
    this.#daemon = daemon;
    this.#deployment = deployment;
    this.#configured = configured;
    this.#newId = newId;
    this.#clock = clock;
  }

  /** The network's name or id; its own is made when it is not there. A failure is not remembered. */
  async ensure(): Promise<string> {
    if (this.#configured !== null) return this.#configured;
    this.#settled ??= this.#settle();
    try {
      return await this.#settled;
    } catch (error) {
      this.#settled = null;
      throw error;
    }
  }

  /** To be called when the engine does not know the network any more: the next `ensure` looks again. */
  forget(): void {
    this.#settled = null;
  }

  async #settle(): Promise<string> {
    const found = await this.#find();
    if (found !== null) return found;
    const made = await this.#create();
    await this.#clock.pause(SETTLE_MS);
    const first = await this.#find();
    if (first === null)
      throw new BrokerError('runtime_unavailable', `network ${made.slice(0, 12)} was made and is not there`);
    if (made !== first) await this.#discard(made);
    return first;
  }

  /** Of several that were made at once the oldest is everybody's. */
  async #find(): Promise<string | null> {
    const filters = { label: [deploymentFilter(this.#deployment)] };
    const networks = (await this.#daemon.call(`look for the network of ${this.#deployment}`, (docker, abortSignal) =>
      docker.listNetworks({ filters, abortSignal } as object),
    )) as readonly ListedNetwork[];
    const prefix = namePrefix(this.#deployment);
    const ours = networks.filter(
      ({ Name, Labels }) => Name.startsWith(prefix) && isOfDeployment(Labels, this.#deployment),
    );
    const [first] = ours.sort((a, b) => a.Created.localeCompare(b.Created) || a.Id.localeCompare(b.Id));
    return first?.Id ?? null;
  }

  /** An engine takes one name for several networks, and then cannot start anything on either: each name is new. */
  async #create(): Promise<string> {
    const name = `${namePrefix(this.#deployment)}${this.#newId().slice(0, 8)}`;
    const network = await this.#daemon.call(`create network ${name}`, (docker, abortSignal) =>
      docker.createNetwork({
        Name: name,
        Driver: 'bridge',
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
        Labels: { [LABEL.deployment]: this.#deployment },
        abortSignal,
      } as Parameters<typeof docker.createNetwork>[0]),
    );
    return network.id;
  }

  async #discard(network: string): Promise<void> {
    await this.#daemon
      .call(`remove network ${network.slice(0, 12)}`, (docker, abortSignal) =>
        docker.getNetwork(network).remove({ abortSignal }),
      )
      .catch(() => undefined);
  }
}

/** Deployments may be called anything; names in an engine may not. */
function namePrefix(deployment: string): string {
  return `sandbox-broker-${createHash('sha256').update(deployment, 'utf8').digest('hex').slice(0, 16)}-`;
}
