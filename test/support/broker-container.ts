import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { BrokerClient } from './broker-client.ts';
import { brokerSettings, type Tree } from './broker-settings.ts';
import { dockerClient, dockerConnection, eventually, leftovers, sweep } from './docker.ts';
import { freePort } from './redis.ts';

export const BROKER_IMAGE = 'sandbox-broker/broker:local';
export const API_KEY = 'a-key-of-the-test';
const LIMIT_MS = 20_000;
const CONFIG = '/etc/sandbox-broker/config.yaml';

/** Makes the broker's image as `scripts/build-broker-image.sh` does, if it is not there. */
export async function ensureBrokerImage(): Promise<void> {
  await promisify(execFile)('bash', [resolve(import.meta.dirname, '../../scripts/build-broker-image.sh')]);
}

export interface BrokerContainerOptions {
  readonly deployment: string;
  /** Laid over the settings for tests. */
  readonly settings?: Tree;
  /** The network it is put on, where it is called `name` and needs the key; null: the host's own, on loopback. */
  readonly network: string | null;
  readonly name?: string;
  /** What its health check asks; the broker's own /healthz unless told otherwise. */
  readonly healthUrl?: string;
}

/** A broker in a container of the broker's image, as restricted as it may be, on the engine that it is to use. */
export class BrokerContainer implements AsyncDisposable {
  readonly container: Docker.Container;
  readonly deployment: string;
  readonly #folder: string;
  #api: BrokerClient | null = null;

  private constructor(about: { deployment: string; folder: string; container: Docker.Container }) {
    this.container = about.container;
    this.deployment = about.deployment;
    this.#folder = about.folder;
  }

  /** Created and started; not yet ready. */
  static async start(options: BrokerContainerOptions): Promise<BrokerContainer> {
    const { deployment, network, name = 'broker' } = options;
    const folder = await mkdtemp(join(tmpdir(), 'broker-container-'));
    const port = network === null ? await freePort() : 8080;
    const server = network === null ? { port } : { host: '0.0.0.0', port };
    const auth = network === null ? {} : { auth: { keys: [{ name: 'test', key: API_KEY }] } };
    const config = brokerSettings(deployment, { server, ...auth, ...options.settings });
    const file = join(folder, 'config.yaml');
    await writeFile(file, JSON.stringify(config), { mode: 0o644 }); // JSON is YAML
    const engine = await engineAccess();
    const container = await dockerClient().createContainer({
      Image: BROKER_IMAGE,
      Hostname: network === null ? '' : name,
      Env: [`HEALTH_URL=${options.healthUrl ?? `http://127.0.0.1:${port}/healthz`}`, ...engine.env],
      Labels: { 'sandbox-broker-test': deployment },
      // Asked sooner than in production; the question itself is the image's.
      Healthcheck: { Interval: 500_000_000, StartPeriod: 1_000_000 },
      HostConfig: {
        NetworkMode: network ?? 'host',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges:true'],
        Binds: [`${file}:${CONFIG}:ro`, ...engine.binds],
        GroupAdd: engine.groups,
        ...(network === null ? {} : { PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] } }),
      },
      ...(network === null ? {} : { NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [name] } } } }),
    });
    const broker = new BrokerContainer({ deployment, folder, container });
    try {
      await container.start();
      const published = (await container.inspect()).NetworkSettings.Ports['8080/tcp']?.[0]?.HostPort;
      broker.#api = new BrokerClient(`http://127.0.0.1:${published ?? port}`, network === null ? null : API_KEY);
      return broker;
    } catch (error) {
      await broker[Symbol.asyncDispose]();
      throw error;
    }
  }

  get api(): BrokerClient {
    return this.#api!;
  }

  /** Until it says that it is ready. */
  async ready(): Promise<this> {
    await this.until('ready', async () => (await this.api.readyz().catch(() => null))?.status === 200);
    return this;
  }

  /** Waits for something about it, and tells its last words if that does not happen. */
  async until(what: string, check: () => Promise<boolean>): Promise<void> {
    await eventually(check, LIMIT_MS).catch(async () => {
      throw new Error(`the broker's container: not ${what} in time\n${await this.said()}`);
    });
  }

  async said(): Promise<string> {
    return (await this.container.logs({ stdout: true, stderr: true, tail: 20 })).toString();
  }

  /** With everything of its deployment. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api?.[Symbol.asyncDispose]();
    await this.container.remove({ force: true, v: true });
    await rm(this.#folder, { recursive: true, force: true });
    await eventually(async () => {
      await sweep(this.deployment);
      return Object.values(await leftovers(this.deployment)).every((left) => left.length === 0);
    });
  }
}

/** How a container on the engine of DOCKER_HOST comes to use that engine itself. */
async function engineAccess(): Promise<{ env: string[]; binds: string[]; groups: string[] }> {
  const connection = dockerConnection();
  if (!('socketPath' in connection)) return { env: [`DOCKER_HOST=${process.env.DOCKER_HOST}`], binds: [], groups: [] };
  const { gid } = await stat(connection.socketPath);
  return { env: [], binds: [`${connection.socketPath}:/var/run/docker.sock`], groups: [String(gid)] };
}

/** What a command inside a container prints, and its exit code. */
export async function inContainer(
  container: Docker.Container,
  command: readonly string[],
): Promise<{ readonly text: string; readonly code: number | null }> {
  const exec = await container.exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true, Tty: true });
  const stream = await exec.start({ Tty: true });
  let text = '';
  for await (const chunk of stream) text += chunk;
  return { text, code: (await exec.inspect()).ExitCode };
}
