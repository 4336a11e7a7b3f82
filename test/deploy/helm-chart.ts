import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { BrokerConfig } from '../../src/config/broker-config.ts';
import { loadConfig } from '../../src/config/load-config.ts';

const root = resolve(import.meta.dirname, '../..');
export const CHART = resolve(root, 'helm/sandbox-broker');
/** Where scripts/helm.sh puts it; else the one of the machine. */
const FETCHED = resolve(root, '.run/tools/helm');
const HELM = existsSync(FETCHED) ? FETCHED : 'helm';

// biome-ignore lint/suspicious/noExplicitAny: manifests and values are trees of anything; each test looks at a few leaves
export type Tree = any;

export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** It asks no cluster of this machine's, and leaves no cache. */
const NOWHERE = { KUBECONFIG: '/dev/null', KUBECACHEDIR: '/dev/null/cache' };

export function helm(args: readonly string[], input = ''): Promise<Outcome> {
  return new Promise((done, fail) => {
    const child = spawn(HELM, args, { cwd: root, env: { ...process.env, ...NOWHERE } });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', (cause) =>
      fail(new Error('helm is needed: `npm test -- test/deploy/helm` fetches it (scripts/helm.sh)', { cause })),
    );
    child.on('close', (code) => done({ code, out, err }));
    child.stdin.on('error', () => undefined).end(input);
  });
}

/** The example values of the chart: ci/<name>-values.yaml. */
export const EXAMPLES: Readonly<Record<string, Tree>> = Object.fromEntries(
  readdirSync(resolve(CHART, 'ci')).map((file) => [
    file.replace('-values.yaml', ''),
    parse(readFileSync(resolve(CHART, 'ci', file), 'utf8')),
  ]),
);

/** `over` laid over `under`, as helm does with one values file after another. */
export function over(under: Tree, top: Tree): Tree {
  if (!isMap(under) || !isMap(top)) return top;
  const keys = new Set([...Object.keys(under), ...Object.keys(top)]);
  return Object.fromEntries([...keys].map((key) => [key, key in top ? over(under[key], top[key]) : under[key]]));
}

const isMap = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

export const RELEASE = 'fleet';
export const NAMESPACE = 'agents';
export const NAME = 'fleet-sandbox-broker';

export function template(values: Tree, args: readonly string[] = [], release = RELEASE): Promise<Outcome> {
  const given = ['template', release, CHART, '--namespace', NAMESPACE, '--values', '-', ...args];
  return helm(given, JSON.stringify(values));
}

export function objectsOf({ code, out, err }: Outcome): Tree[] {
  if (code !== 0) throw new Error(`helm failed: ${err}`);
  return parseAllDocuments(out)
    .map((document) => {
      const [problem] = [...document.errors, ...document.warnings];
      if (problem !== undefined) throw problem;
      return document.toJS();
    })
    .filter((object) => object !== null);
}

/** One rendering, and the things that tests look for in it. */
export class Rendered {
  readonly objects: readonly Tree[];
  readonly values: Tree;

  constructor(values: Tree, objects: readonly Tree[]) {
    this.values = values;
    this.objects = objects;
  }

  static async of(values: Tree, args: readonly string[] = [], release = RELEASE): Promise<Rendered> {
    return new Rendered(values, objectsOf(await template(values, args, release)));
  }

  all(kind: string): Tree[] {
    return this.objects.filter((object) => object.kind === kind);
  }

  find(kind: string, ending = ''): Tree {
    const { name } = this.all('Deployment')[0].metadata;
    return this.objects.find((object) => object.kind === kind && object.metadata.name === `${name}${ending}`);
  }

  get workloads(): Tree[] {
    return [...this.all('Deployment'), ...this.all('StatefulSet')];
  }

  get pod(): Tree {
    return this.all('Deployment')[0].spec.template.spec;
  }

  get broker(): Tree {
    return this.pod.containers[0];
  }

  get configText(): string {
    return this.find('ConfigMap').data['config.yaml'];
  }

  /** What the broker's container has in its environment; a secret of somebody else's holds stand-ins. */
  get environment(): Record<string, string> {
    const entries = this.broker.env.map(({ name, value, valueFrom }: Tree) => {
      const data = this.secretData(valueFrom?.secretKeyRef.name);
      return [
        name,
        value ?? data?.[valueFrom.secretKeyRef.key] ?? (valueFrom.secretKeyRef.optional ? '' : `${name}-1`),
      ];
    });
    return Object.fromEntries(entries);
  }

  secretData(name: string | undefined): Record<string, string> | undefined {
    const secret = this.all('Secret').find(({ metadata }) => metadata.name === name);
    if (secret === undefined) return undefined;
    const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');
    return Object.fromEntries(Object.entries<string>(secret.data).map(([key, text]) => [key, decode(text)]));
  }

  /** The configuration as the broker reads it; its certificates are stand-ins. */
  get config(): BrokerConfig {
    return loadConfig({
      path: 'config.yaml',
      env: this.environment,
      readFile: (path) => (path === 'config.yaml' ? this.configText : `-----BEGIN CERTIFICATE-----\n${path}`),
    });
  }
}
