import { createHash } from 'node:crypto';
import { BrokerError } from '../domain/errors.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';
import { deploymentFilter, isOfDeployment, LABEL } from './labels.ts';

export interface DeploymentNetworkOptions {
  readonly daemon: DockerDaemon;
  readonly deployment: string;
  /** The network that the configuration names; null: one of the deployment's own. */
  readonly configured: string | null;
}

interface ListedNetwork {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly Labels?: Record<string, string> | null;
}

/**
 * The network that sandboxes are put on. A deployment's own is a bridge whose containers cannot reach each other. It
 * stays when the broker ends, like the mark: replicas come and go.
 */
export class DeploymentNetwork {
  readonly #daemon: DockerDaemon;
  readonly #deployment: string;
  readonly #configured: string | null;
  readonly #name: string;
  #settled: Promise<string> | null = null;

  constructor({ daemon, deployment, configured }: DeploymentNetworkOptions) {
    this.#daemon = daemon;
    this.#deployment = deployment;
    this.#configured = configured;
    this.#name = networkName(deployment);
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
    // Engines do not promise that a name is unique: of several made at once all replicas use the same one.
    const first = await this.#find();
    if (first === null) throw new BrokerError('runtime_unavailable', `network ${this.#name} was made and is not there`);
    if (made !== null && made !== first) await this.#discard(made);
    return first;
  }

  async #find(): Promise<string | null> {
    const networks = (await this.#daemon.call(`look for network ${this.#name}`, (docker, abortSignal) =>
      docker.listNetworks({
        filters: { name: [this.#name], label: [deploymentFilter(this.#deployment)] },
        abortSignal,
      } as object),
    )) as readonly ListedNetwork[];
    const ours = networks.filter(({ Name, Labels }) => Name === this.#name && isOfDeployment(Labels, this.#deployment));
    const [first] = ours.sort((a, b) => a.Created.localeCompare(b.Created) || a.Id.localeCompare(b.Id));
    return first?.Id ?? null;
  }

  /** Null: somebody else made it in the same moment. */
  async #create(): Promise<string | null> {
    try {
      const network = await this.#daemon.call(`create network ${this.#name}`, (docker, abortSignal) =>
        docker.createNetwork({
          Name: this.#name,
          CheckDuplicate: true,
          Driver: 'bridge',
          Options: { 'com.docker.network.bridge.enable_icc': 'false' },
          Labels: { [LABEL.deployment]: this.#deployment },
          abortSignal,
        } as Parameters<typeof docker.createNetwork>[0]),
      );
      return network.id;
    } catch (error) {
      if (refusalOf(error)?.status === 409) return null;
      throw error;
    }
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
export function networkName(deployment: string): string {
  return `sandbox-broker-${createHash('sha256').update(deployment, 'utf8').digest('hex').slice(0, 16)}`;
}
