import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as tls from 'node:tls';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  CHART,
  EXAMPLES,
  helm,
  NAME,
  NAMESPACE,
  objectsOf,
  over,
  RELEASE,
  Rendered,
  type Tree,
  template,
} from './helm-chart.ts';
import { withCluster } from './helm-cluster.ts';
import { MATRIX } from './helm-matrix.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'helm-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const seconds = (pod: Tree): number => pod.terminationGracePeriodSeconds;
const checksums = ({ objects }: Rendered): Tree =>
  objects.find(({ kind }) => kind === 'Deployment').spec.template.metadata.annotations;
const CERTIFICATES = ['ca.pem', 'cert.pem', 'key.pem', 'server-cert.pem', 'server-key.pem'];

describe('what is rendered, the broker takes', () => {
  test.each(Object.keys(MATRIX))('main.ts --check: %s', async (name) => {
    const given = await Rendered.of(MATRIX[name]);
    const here = mkdtempSync(join(folder, 'check-'));
    const made = given.secretData(`${NAME}-engine-tls`);
    const standIn = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    for (const file of CERTIFICATES.slice(0, 3)) writeFileSync(join(here, file), made?.[file] ?? standIn);
    const path = join(here, 'config.yaml');
    writeFileSync(path, given.configText.replaceAll('/etc/engine-tls/', `${here}/`));
    const env = { PATH: process.env.PATH, ...given.environment };
    const said = await new Promise<string>((done) => {
      execFile(process.execPath, ['src/main.ts', '--config', path, '--check'], { cwd: root, env }, (_e, out, err) =>
        done(out + err),
      );
    });
    expect(said).toBe('The configuration is valid.\n');
  });

  test('the README’s example, with its secrets filled in', async () => {
    const [, text = ''] = /^```yaml\n(.*?)^```$/ms.exec(readFileSync(join(CHART, 'README.md'), 'utf8')) ?? [];
    const { config, broker } = await Rendered.of(parse(text.replaceAll('…', 'filled-in')));
    expect(broker.image).toBe('registry.example.com/sandbox-broker:0.1.0');
    expect(config.auth.keys).toEqual([{ name: 'gateway', key: 'filled-in' }]);
    expect(config.profiles.get('default')?.image).toBe('registry.example.com/sandbox:1');
  });

  test('a million stays a million, zero stays zero, and text that looks like something else stays text', async () => {
    const { config, configText } = await Rendered.of(
      over(EXAMPLES.remote, {
        config: {
          capacity: { max: 1_000_000, perUser: 0 },
          idle: { timeout: 0 },
          profiles: { default: { environment: { A: 'off', B: '1e3', C: '007', D: 'a: b # c', E: "'\n" } } },
        },
      }),
    );
    expect(config.capacity).toMatchObject({ max: 1_000_000, perUser: 0 });
    expect(config.idle.timeoutMs).toBe(0);
    const { environment } = config.profiles.get('default')!;
    expect(environment).toEqual({ A: 'off', B: '1e3', C: '007', D: 'a: b # c', E: "'\n" });
    expect(configText).not.toContain('null');
  });
});

test.each([
  ['1ms', 1 + 5 + 10],
  ['25s', 25 + 5 + 10],
  ['90500ms', 91 + 5 + 10],
  ['2m', 120 + 5 + 10],
  ['1h', 3600 + 5 + 10],
])('[S-01] the termination grace is made of the drain: %s', async (drainTimeout, grace) => {
  const { pod, config } = await Rendered.of(over(EXAMPLES.remote, { config: { shutdown: { drainTimeout } } }));
  expect(seconds(pod)).toBe(grace);
  expect(seconds(pod) * 1_000).toBeGreaterThan(config.shutdown.drainTimeoutMs + 5_000);
});

test('[S-01] and of the pause before it', async () => {
  const values = over(EXAMPLES.remote, { preStopSeconds: 30, terminationMarginSeconds: 1 });
  const { pod, broker } = await Rendered.of(values);
  expect(seconds(pod)).toBe(25 + 30 + 1);
  expect(broker.lifecycle.preStop.sleep.seconds).toBe(30);
});

test('a change of configuration or secret rolls the brokers; another number of them does not', async () => {
  const before = checksums(await Rendered.of(EXAMPLES.remote));
  const after = async (change: Tree): Promise<Tree> => checksums(await Rendered.of(over(EXAMPLES.remote, change)));
  expect(await after({ replicaCount: 5, service: { port: 80 } })).toEqual(before);
  const config = await after({ config: { capacity: { max: 7 } } });
  expect(config['checksum/config']).not.toBe(before['checksum/config']);
  const key = await after({ secret: { BROKER_API_KEY: 'another' } });
  expect(key['checksum/secret']).not.toBe(before['checksum/secret']);
  expect(key['checksum/config']).toBe(before['checksum/config']);
});

describe('certificates of the bundled engine', () => {
  test('brokers and engine trust each other by them, under the name that brokers use', async () => {
    const given = await Rendered.of(EXAMPLES.bundled);
    const data = given.secretData(`${NAME}-engine-tls`)!;
    const [ca = '', cert = '', key = '', serverCert = '', serverKey = ''] = CERTIFICATES.map((file) => data[file]);
    expect(new X509Certificate(serverCert).validToDate.getFullYear()).toBeGreaterThan(new Date().getFullYear() + 8);
    const server = tls.createServer({ ca, cert: serverCert, key: serverKey, requestCert: true });
    server.on('secureConnection', (socket) => socket.end('in'));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const ask = (options: tls.ConnectionOptions): Promise<string> =>
      new Promise((done) => {
        const socket = tls.connect({
          port,
          host: '127.0.0.1',
          ca,
          servername: given.config.runtime.docker.probeHost,
          ...options,
        });
        socket.on('data', (text) => done(String(text))).on('error', ({ message }) => done(message));
      });
    expect(await ask({ cert, key })).toBe('in');
    expect(await ask({})).toMatch(/certificate required/);
    expect(await ask({ cert, key, servername: 'elsewhere.svc' })).toMatch(/does not match/);
    await new Promise((done) => server.close(done));
    const [deployment, engine] = ['Deployment', 'StatefulSet'].map((kind) =>
      given.find(kind, kind === 'Deployment' ? '' : '-engine'),
    );
    // One rendering makes them once: what both pods are told by is the same.
    expect(engine.spec.template.metadata.annotations['checksum/engine-tls']).toBe(
      deployment.spec.template.metadata.annotations['checksum/engine-tls'],
    );
  });

  test('brokers do not get the engine’s key, and the engine not theirs', async () => {
    const given = await Rendered.of(EXAMPLES.bundled);
    const files = (pod: Tree): string[] => pod.volumes.at(-1).secret.items.map(({ key }: Tree) => key);
    expect(files(given.pod)).toEqual(['ca.pem', 'cert.pem', 'key.pem']);
    expect(files(given.find('StatefulSet', '-engine').spec.template.spec)).toEqual([
      'ca.pem',
      'server-cert.pem',
      'server-key.pem',
    ]);
  });

  test('an upgrade keeps those that the cluster has', async () => {
    const first = await Rendered.of(EXAMPLES.bundled);
    const secret = first.find('Secret', '-engine-tls');
    const annotations = { 'meta.helm.sh/release-name': RELEASE, 'meta.helm.sh/release-namespace': NAMESPACE };
    const owned = { metadata: { namespace: NAMESPACE, annotations } };
    const there = { [`/api/v1/namespaces/${NAMESPACE}/secrets/${secret.metadata.name}`]: over(secret, owned) };
    const second = await withCluster(first.objects, there, (url) => {
      const args = ['--dry-run=server', '--disable-openapi-validation', '--kube-apiserver', url];
      return Rendered.of(EXAMPLES.bundled, args);
    });
    expect(second.find('Secret', '-engine-tls').data).toEqual(secret.data);
    expect(checksums(second)).toEqual(checksums(first));
    expect((await Rendered.of(EXAMPLES.bundled)).find('Secret', '-engine-tls').data).not.toEqual(secret.data);
  });
});

test('the longest names that Kubernetes gives a release are short enough for what the chart makes of them', async () => {
  const release = 'r'.repeat(53);
  const outcome = await template(EXAMPLES.bundled, ['--namespace', 'n'.repeat(63)], release);
  const given = new Rendered(EXAMPLES.bundled, objectsOf(outcome));
  for (const { metadata } of given.objects) expect(metadata.name.length).toBeLessThanOrEqual(63);
  expect(given.config.deployment).toMatch(/^n{54}-[0-9a-f]{8}$/);
});

async function notesOf(values: Tree): Promise<string> {
  const args = ['install', 'fleet', CHART, '--namespace', NAMESPACE, '--dry-run=client', '--values', '-'];
  const { out } = await helm(args, JSON.stringify(values));
  return out.slice(out.indexOf('NOTES:'));
}

test('the notes say what to do next, where to call, and what an upgrade does not do', async () => {
  const notes = await notesOf(EXAMPLES.bundled);
  expect(notes).toContain(`rollout status deployment/${NAME}\n`);
  expect(notes).toContain(`port-forward service/${NAME} 8080:8080 &`);
  expect(notes).toContain(`http://${NAME}.${NAMESPACE}.svc:8080`);
  expect(notes).toContain(`delete pod ${NAME}-engine-0`);
  expect(notes).not.toMatch(/not-a-real|<no value>|WARNING/);
});

test('the notes warn of a Prometheus that is not let in, and of links that lead nowhere', async () => {
  const watched = { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } };
  const notes = await notesOf(over(EXAMPLES.remote, watched));
  expect(notes).toContain('WARNING: networkPolicy.monitoring is empty');
  expect(notes).toContain('Alerts link to docs/runbook.md, which leads nowhere');
  expect(await notesOf(over(EXAMPLES.remote, { ...watched, networkPolicy: { enabled: false } }))).not.toContain(
    'WARNING',
  );
  expect(await notesOf(EXAMPLES.remote)).toContain('Nobody watches it yet: serviceMonitor.enabled');
});
