import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { dockerClient } from './docker.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

export interface Output {
  readonly code: number;
  readonly text: string;
}

/** docker-compose.yml as a project of a test's own. Only what is given here fills its variables. */
export class ComposeProject {
  readonly name: string;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #docker = dockerClient();
  #command: readonly string[] | null = null;

  constructor(name: string, variables: Readonly<Record<string, string>>) {
    this.name = name;
    this.#variables = variables;
  }

  /** What a command of compose says, however it ends. */
  async try(...args: readonly string[]): Promise<Output> {
    this.#command ??= await composeCommand();
    const [program, ...first] = this.#command;
    // A .env beside the file is somebody's own. The example's values are empty, so those given count.
    const all = [
      ...first,
      '--env-file',
      resolve(ROOT, 'deploy/compose/.env.example'),
      '-p',
      this.name,
      '-f',
      resolve(ROOT, 'docker-compose.yml'),
      ...args,
    ];
    const { PATH = '', HOME = '/tmp', DOCKER_HOST } = process.env;
    const env = { PATH, HOME, ...(DOCKER_HOST === undefined ? {} : { DOCKER_HOST }), ...this.#variables };
    return run(program!, all, { cwd: ROOT, env, timeout: 120_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      ({ code, stdout = '', stderr = '', message }) => ({
        code: typeof code === 'number' ? code : 1,
        text: `${stdout}${stderr}` || message,
      }),
    );
  }

  async do(...args: readonly string[]): Promise<string> {
    const { code, text } = await this.try(...args);
    if (code !== 0) throw new Error(`compose ${args.join(' ')}: ${text}`);
    return text;
  }

  async container(service: string): Promise<Docker.Container> {
    const label = [`com.docker.compose.project=${this.name}`, `com.docker.compose.service=${service}`];
    const [found] = await this.#docker.listContainers({ all: true, filters: { label } });
    if (found === undefined) throw new Error(`${service} has no container`);
    return this.#docker.getContainer(found.Id);
  }

  /** The addresses of a service, by network: without the project's name, where it has it. */
  async addresses(service: string): Promise<Readonly<Record<string, string>>> {
    const { NetworkSettings } = await (await this.container(service)).inspect();
    const entries = Object.entries(NetworkSettings.Networks);
    return Object.fromEntries(entries.map(([name, { IPAddress }]) => [name.replace(`${this.name}_`, ''), IPAddress]));
  }

  /** What the engine still has of it. */
  async left(): Promise<string[]> {
    const filters = { label: [`com.docker.compose.project=${this.name}`] };
    const [containers, networks, volumes] = await Promise.all([
      this.#docker.listContainers({ all: true, filters }),
      this.#docker.listNetworks({ filters }),
      this.#docker.listVolumes({ filters }),
    ]);
    return [
      ...containers.flatMap(({ Names }) => Names),
      ...networks.map(({ Name }) => Name),
      ...(volumes.Volumes ?? []).map(({ Name }) => Name),
    ];
  }
}

/** The plugin of the docker command, or the program of its own. */
async function composeCommand(): Promise<readonly string[]> {
  const hasPlugin = await run('docker', ['compose', 'version']).then(
    () => true,
    () => false,
  );
  return hasPlugin ? ['docker', 'compose'] : ['docker-compose'];
}
