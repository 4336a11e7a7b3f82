import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { access, mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect } from 'vitest';
import { BrokerClient } from './broker-client.ts';
import { brokerSettings, type Tree } from './broker-settings.ts';
import { eventually, leftovers, newDeployment, realClock, sweep } from './docker.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const START_LIMIT_MS = 40_000;
const LOG_LIMIT_MS = 20_000;
const END_LIMIT_MS = 30_000;

/** One line of a broker's log. */
export interface LogLine extends Tree {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly event?: string;
}

export interface BrokerOptions {
  /** Laid over the settings for tests, key by key. */
  readonly overrides?: Tree;
  /** A module that the process loads before its own, as text: how a test reaches inside. */
  readonly preload?: string;
  readonly nodeArguments?: readonly string[];
  /** Variables to set, or with undefined to take away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The test makes the process fail: what it then writes is no fault. */
  readonly failing?: boolean;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * For one file: gives the function that starts brokers, and looks, when the file is through, for whatever they have
 * left behind and for anything that went wrong inside of them unexpectedly.
 */
export function useBrokers() {
  const processes: BrokerProcess[] = [];
  const deployments = new Set<string>();

  afterAll(async () => {
    const left = (await Promise.all(processes.map((broker) => broker.traces()))).flat();
    // A test that ran out of time has not disposed of them.
    await Promise.allSettled(processes.map((broker) => broker[Symbol.asyncDispose]()));
    expect(left, 'a process or a folder is left').toEqual([]);
    expect(processes.flatMap(({ complaints, failing }) => (failing ? [] : complaints))).toEqual([]);
    for (const deployment of deployments) {
      expect(await leftovers(deployment), deployment).toEqual({ containers: [], networks: [], volumes: [] });
    }
  });

  /** A process that may end by itself: for starts that are refused. Does not wait. */
  async function launchBroker(options: BrokerOptions = {}, args: readonly string[] = []): Promise<BrokerProcess> {
    const deployment = String(options.overrides?.deployment ?? newDeployment('broker'));
    const folder = await mkdtemp(join(tmpdir(), 'broker-'));
    const config = join(folder, 'config.yaml');
    // JSON is YAML.
    await writeFile(config, JSON.stringify(brokerSettings(deployment, options.overrides)));
    deployments.add(deployment);
    const broker = new BrokerProcess({ deployment, folder, options, args: ['--config', config, ...args] });
    processes.push(broker);
    return broker;
  }

  /** A broker that listens. Rejects when it ends before. */
  async function startBroker(options: BrokerOptions = {}): Promise<BrokerProcess> {
    const broker = await launchBroker(options);
    try {
      await broker.listening();
      return broker;
    } catch (error) {
      await broker[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** As `startBroker`, once it is ready. */
  async function readyBroker(options: BrokerOptions = {}): Promise<BrokerProcess> {
    const broker = await startBroker(options);
    await broker.logged(({ event, ready }) => event === 'readiness' && ready === true);
    return broker;
  }

  return { launchBroker, startBroker, readyBroker };
}

/** One broker in a process of its own. */
export class BrokerProcess implements AsyncDisposable {
  readonly deployment: string;
  readonly failing: boolean;
  readonly logs: LogLine[] = [];
  readonly #end: Promise<Ended>;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #news = new EventEmitter().setMaxListeners(0);
  #stdout = '';
  #stderr = '';
  #client: BrokerClient | null = null;
  #hasEnded = false;

  constructor(about: { deployment: string; folder: string; options: BrokerOptions; args: readonly string[] }) {
    const { preload, nodeArguments = [], env = {}, failing = false } = about.options;
    this.deployment = about.deployment;
    this.failing = failing;
    this.#folder = about.folder;
    const imported = preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
    this.#child = spawn(process.execPath, [...nodeArguments, ...imported, join(ROOT, 'src/main.ts'), ...about.args], {
      cwd: about.folder,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => this.#read(line));
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.#end = new Promise((settle) => {
      this.#child.once('close', (code, signal) => {
        this.#hasEnded = true;
        settle({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
        this.#news.emit('end');
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** A client of this broker; throws before it listens. */
  get api(): BrokerClient {
    if (this.#client === null) throw new Error('the broker does not listen yet');
    return this.#client;
  }

  async listening(): Promise<void> {
    const { host, port } = await this.logged(({ msg }) => msg === 'listening', START_LIMIT_MS);
    this.#client ??= new BrokerClient(`http://${host}:${port}`);
  }

  /** The first line that fits, written before or from now on. Rejects at the limit, or when the process ends without. */
  logged(fits: (line: LogLine) => boolean, limitMs = LOG_LIMIT_MS): Promise<LogLine> {
    const { promise, resolve: settle, reject } = Promise.withResolvers<LogLine>();
    const look = (): void => {
      const found = this.logs.find(fits);
      if (found !== undefined) settle(found);
      else if (this.#hasEnded) reject(new Error(`the broker ended without it:\n${this.#lastWords()}`));
    };
    const timer = setTimeout(() => {
      reject(new Error(`not logged within ${limitMs} ms: ${fits}\n${this.#lastWords()}`));
    }, limitMs);
    this.#news.on('line', look).on('end', look);
    look();
    return promise.finally(() => {
      clearTimeout(timer);
      this.#news.off('line', look).off('end', look);
    });
  }

  /** All lines of one event so far. */
  events(event: string): LogLine[] {
    return this.logs.filter((line) => line.event === event);
  }

  /** How the process ended, once its output is read. Rejects when it runs on for longer than the limit. */
  async ended(limitMs = END_LIMIT_MS): Promise<Ended> {
    const late = new AbortController();
    const expired = realClock.pause(limitMs, late.signal).then(() => null);
    const end = await Promise.race([this.#end, expired]);
    late.abort();
    if (end !== null) return end;
    throw new Error(`the broker runs on after ${limitMs} ms:\n${this.#lastWords()}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** How many sockets the process has open. */
  async sockets(): Promise<number> {
    const folder = `/proc/${this.pid}/fd`;
    const targets = (await readdir(folder)).map((name) => readlink(join(folder, name)).catch(() => ''));
    return (await Promise.all(targets)).filter((target) => target.startsWith('socket:')).length;
  }

  /** What no run should write, unless a test makes it fail: anything on standard error, or a fatal line. */
  get complaints(): readonly string[] {
    const fatal = this.logs.filter(({ level }) => level === 'fatal').map((line) => JSON.stringify(line));
    return this.#stderr === '' ? fatal : [...fatal, this.#stderr];
  }

  /** What is still there of it: the process, its folder. */
  async traces(): Promise<string[]> {
    const traces = this.#hasEnded ? [] : [`process ${this.pid}`];
    await access(this.#folder).then(
      () => traces.push(this.#folder),
      () => undefined,
    );
    return traces;
  }

  /** Kills it if it still runs, and removes everything of its deployment and its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasEnded) this.#child.kill('SIGKILL');
    await this.#end;
    await this.#client?.[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
    // What it asked for last may still be on its way in the engine.
    await eventually(async () => {
      await sweep(this.deployment);
      return Object.values(await leftovers(this.deployment)).every((left) => left.length === 0);
    });
  }

  #lastWords(): string {
    return [...this.#stdout.split('\n').slice(-20), this.#stderr].join('\n');
  }

  #read(line: string): void {
    this.#stdout += `${line}\n`;
    if (!line.startsWith('{')) return;
    this.logs.push(JSON.parse(line) as LogLine);
    this.#news.emit('line');
  }
}
