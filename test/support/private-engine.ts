import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import Docker from 'dockerode';

const ROOT = resolve(import.meta.dirname, '../..');
const START_LIMIT_MS = 90_000;

/** Started and taken down as by scripts/test.sh; the end of its input is the sign to take it down, also when this process dies. */
const SCRIPT = `
set -uo pipefail
source scripts/services.sh
RUN_DIR="$1"
trap '' INT TERM
start_engine || { stop_engine "$ENGINE_DIR"; exit 1; }
printf '%s\\n' "$ENGINE_DIR"
cat >/dev/null
stop_engine "$ENGINE_DIR"
`;

/**
 * A second Docker engine beside the one of DOCKER_HOST, on a bridge of its own: for tests that need two, or that stop
 * one. It needs root and Docker's daemon on this machine.
 */
export class PrivateEngine implements AsyncDisposable {
  readonly socketPath: string;
  readonly docker: Docker;
  readonly #pid: number;
  readonly #folder: string;
  readonly #script: ChildProcess;

  private constructor(about: { directory: string; pid: number; folder: string; script: ChildProcess }) {
    this.socketPath = join(about.directory, 'docker.sock');
    this.docker = new Docker({ socketPath: this.socketPath });
    this.#pid = about.pid;
    this.#folder = about.folder;
    this.#script = about.script;
  }

  static async start(): Promise<PrivateEngine> {
    const folder = await mkdtemp(join(tmpdir(), 'second-engine-'));
    const script = spawn('bash', ['-c', SCRIPT, 'private-engine', folder], {
      cwd: ROOT,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let said = '';
    script.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    try {
      const lines = createInterface({ input: script.stdout! });
      const first = once(lines, 'line', { signal: AbortSignal.timeout(START_LIMIT_MS) });
      const ended = once(script, 'exit').then(() => Promise.reject(new Error('its script ended')));
      ended.catch(() => {});
      const [directory] = (await Promise.race([first, ended])) as [string];
      const pid = Number(await readFile(join(directory, 'daemon.pid'), 'utf8'));
      return new PrivateEngine({ directory, pid, folder, script });
    } catch (error) {
      script.stdin!.end();
      if (script.exitCode === null) await once(script, 'exit');
      await rm(folder, { recursive: true, force: true });
      throw new Error(`the private engine did not start: ${said}`, { cause: error });
    }
  }

  /** Copies an image from another engine. */
  async load(image: string, from: Docker): Promise<void> {
    const reply = await this.docker.loadImage(await from.getImage(image).get());
    for await (const _ of reply as AsyncIterable<Buffer>);
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.#pid, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal('SIGCONT');
    const exit = once(this.#script, 'exit');
    this.#script.stdin!.end();
    await exit;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
