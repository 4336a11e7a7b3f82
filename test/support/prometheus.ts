import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, until } from './redis.ts';

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

/** A Prometheus of a test's own: it scrapes and evaluates every second, keeps its data in a folder, and is stopped by its id. */
export class PrometheusServer implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  readonly #process: ChildProcess;
  #said = '';

  private constructor(url: string, folder: string, args: readonly string[]) {
    this.url = url;
    this.#folder = folder;
    this.#process = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process.on('error', (error) => {
      this.#said += error.message;
    });
    this.#process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
  }

  /** `targets` as `host:port`; the job is called `sandbox-broker`. */
  static async start(targets: readonly string[], ruleFile: string): Promise<PrometheusServer> {
    const folder = await mkdtemp(join(tmpdir(), 'prometheus-'));
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '900ms', evaluation_interval: '1s' },
      rule_files: [ruleFile],
      scrape_configs: [{ job_name: 'sandbox-broker', static_configs: [{ targets }] }],
    };
    const file = join(folder, 'prometheus.yml');
    await writeFile(file, JSON.stringify(config)); // JSON is YAML
    const address = `127.0.0.1:${await freePort()}`;
    const server = new PrometheusServer(`http://${address}`, folder, [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ]);
    try {
      await until(() => server.#ready(), 'Prometheus to be ready');
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw new Error(`Prometheus did not start: ${server.#said}`, { cause: error });
    }
  }

  /** The value now of each series of an expression. */
  async query(expr: string): Promise<Sample[]> {
    const { result } = await this.#get<{ result: { metric: Sample['metric']; value: [number, string] }[] }>(
      `query?${new URLSearchParams({ query: expr })}`,
    );
    return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
  }

  /** Of an expression that gives one series. */
  async value(expr: string): Promise<number | null> {
    return (await this.query(expr))[0]?.value ?? null;
  }

  async rules(): Promise<RuleState[]> {
    const { groups } = await this.#get<{ groups: { rules: RuleState[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<T>(path: string): Promise<T> {
    const reply = await fetch(`${this.url}/api/v1/${path}`);
    const body = (await reply.json()) as { status: string; error?: string; data: T };
    if (body.status !== 'success') throw new Error(`Prometheus refused ${path}: ${body.error}`);
    return body.data;
  }

  async #ready(): Promise<boolean> {
    const reply = await fetch(`${this.url}/-/ready`).catch(() => null);
    await reply?.arrayBuffer();
    return reply?.status === 200;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.pid !== undefined && this.#process.exitCode === null && this.#process.signalCode === null) {
      const exit = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await exit;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}
