import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { CHART, helm, Rendered, type Tree } from './helm-chart.ts';
import { problemsOf } from './helm-kubernetes.ts';
import { MATRIX } from './helm-matrix.ts';

const root = resolve(import.meta.dirname, '../..');
const openapi = JSON.parse(readFileSync(resolve(root, 'openapi/openapi.json'), 'utf8')) as { paths: Tree };

const names = Object.keys(MATRIX);
const rendered = new Map<string, Rendered>();
const get = (name: string): Rendered => rendered.get(name)!;

beforeAll(async () => {
  for (const [name, values] of Object.entries(MATRIX)) rendered.set(name, await Rendered.of(values));
});

const labelsOf = (workload: Tree): Tree => workload.spec.template.metadata.labels;
const fits = (selector: Tree, labels: Tree): boolean =>
  Object.entries(selector).length > 0 && Object.entries(selector).every(([key, value]) => labels[key] === value);

describe.each(names)('%s', (name) => {
  test('helm lint --strict has nothing to say', async () => {
    const { code, out } = await helm(['lint', '--strict', CHART, '--values', '-'], JSON.stringify(MATRIX[name]));
    expect(out).toContain('0 chart(s) failed');
    expect(code).toBe(0);
  });

  test('Kubernetes would take every object, and each has a name of its own', () => {
    const { objects } = get(name);
    expect(objects.flatMap((object) => problemsOf(object).map((problem) => `${object.kind}: ${problem}`))).toEqual([]);
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { metadata } of objects) {
      expect(metadata.namespace).toBeUndefined();
      expect(metadata.labels['app.kubernetes.io/managed-by']).toBe('Helm');
    }
  });

  test('every selector chooses the pods of one workload, and the monitor the brokers’ service', () => {
    const given = get(name);
    const chosen = (selector: Tree): string[] =>
      given.workloads.filter((workload) => fits(selector, labelsOf(workload))).map(({ metadata }) => metadata.name);
    for (const workload of given.workloads) {
      expect(chosen(workload.spec.selector.matchLabels)).toEqual([workload.metadata.name]);
    }
    for (const { metadata, spec } of given.all('Service')) expect(chosen(spec.selector)).toEqual([metadata.name]);
    for (const { metadata, spec } of given.all('PodDisruptionBudget')) {
      expect(chosen(spec.selector.matchLabels)).toEqual([metadata.name]);
    }
    for (const { metadata, spec } of given.all('NetworkPolicy')) {
      expect(chosen(spec.podSelector.matchLabels)).toEqual([metadata.name]);
    }
    for (const { labelSelector } of given.pod.topologySpreadConstraints ?? []) {
      expect(chosen(labelSelector.matchLabels)).toEqual([given.find('Deployment').metadata.name]);
    }
    for (const { spec } of given.all('ServiceMonitor')) {
      const services = given.all('Service').filter(({ metadata }) => fits(spec.selector.matchLabels, metadata.labels));
      expect(services).toEqual([given.find('Service')]);
      for (const { port } of spec.endpoints) expect(services[0].spec.ports.map((p: Tree) => p.name)).toContain(port);
    }
  });

  test('every port that is named is a port of those pods', () => {
    const given = get(name);
    const portsOf = (selector: Tree): string[] =>
      given.workloads
        .filter((workload) => fits(selector, labelsOf(workload)))
        .flatMap(({ spec }) => spec.template.spec.containers[0].ports.map((port: Tree) => port.name));
    const named = (ports: Tree[]): string[] => ports.filter((port) => typeof port === 'string');
    for (const { spec } of given.all('Service')) {
      expect(portsOf(spec.selector)).toEqual(expect.arrayContaining(named(spec.ports.map((p: Tree) => p.targetPort))));
    }
    for (const { spec } of given.all('NetworkPolicy')) {
      const ports = spec.ingress.flatMap((rule: Tree) => rule.ports.map((port: Tree) => port.port));
      expect(portsOf(spec.podSelector.matchLabels)).toEqual(expect.arrayContaining(named(ports)));
    }
    for (const { spec } of given.workloads) {
      const [container] = spec.template.spec.containers;
      const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
      for (const probe of probes) {
        const port = (probe.httpGet ?? probe.tcpSocket)?.port;
        if (port !== undefined) expect(container.ports.map((p: Tree) => p.name)).toContain(port);
        else expect(probe.exec.command.length).toBeGreaterThan(1);
      }
    }
    expect(given.broker.ports[0].containerPort).toBe(given.config.server.port);
  });

  test('probes and monitor ask paths that the API has', () => {
    const { broker, all } = get(name);
    const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => broker[probe].httpGet.path);
    expect(paths).toEqual(['/healthz', '/healthz', '/readyz']);
    const scraped = all
      .call(get(name), 'ServiceMonitor')
      .flatMap(({ spec }) => spec.endpoints.map((e: Tree) => e.path));
    for (const path of [...paths, ...scraped]) expect(openapi.paths).toHaveProperty([path, 'get']);
  });

  test('what pods take from secrets, configurations and volumes is there', () => {
    const given = get(name);
    const outside = [
      given.values.existingSecret,
      given.values.engine.remote?.tlsSecret,
      given.values.engine.bundled?.tlsSecret,
    ];
    const keysOf = (secret: string): string[] | null => Object.keys(given.secretData(secret) ?? {}).sort() ?? null;
    for (const { spec } of given.workloads) {
      const { containers, volumes = [] } = spec.template.spec;
      const [{ env, volumeMounts }] = containers;
      for (const { valueFrom } of env) {
        if (valueFrom === undefined || outside.includes(valueFrom.secretKeyRef.name)) continue;
        if (!valueFrom.secretKeyRef.optional)
          expect(keysOf(valueFrom.secretKeyRef.name)).toContain(valueFrom.secretKeyRef.key);
      }
      for (const { secret, configMap } of volumes) {
        if (configMap) expect(given.all('ConfigMap').map(({ metadata }) => metadata.name)).toContain(configMap.name);
        if (!secret || outside.includes(secret.secretName)) continue;
        expect(keysOf(secret.secretName)).toEqual(expect.arrayContaining(secret.items.map((item: Tree) => item.key)));
      }
      const there = [...volumes, ...(spec.volumeClaimTemplates ?? []).map((claim: Tree) => claim.metadata)];
      expect(there.map((volume: Tree) => volume.name).sort()).toEqual(
        volumeMounts.map((mount: Tree) => mount.name).sort(),
      );
    }
    expect(new Set(given.broker.env.map((entry: Tree) => entry.name)).size).toBe(given.broker.env.length);
    if (given.values.existingSecret) expect(given.find('Secret')).toBeUndefined();
  });

  test('pods are restricted, but for a bundled engine, and none has a token', () => {
    const given = get(name);
    for (const { metadata, spec } of given.workloads) {
      const pod = spec.template.spec;
      const [container] = pod.containers;
      expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      expect(container.resources).toMatchObject({
        requests: { cpu: expect.anything() },
        limits: { memory: expect.anything() },
      });
      if (metadata.name.endsWith('-engine')) {
        expect(container.securityContext).toEqual({ privileged: true });
        continue;
      }
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(pod.securityContext.runAsUser).toBeGreaterThan(0);
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(pod.hostNetwork ?? pod.hostPID ?? pod.hostIPC).toBeUndefined();
    }
    for (const account of given.all('ServiceAccount')) expect(account.automountServiceAccountToken).toBe(false);
  });

  test('[S-01] a stop is given longer than the pause before it and the drain', () => {
    const { pod, broker, config } = get(name);
    const pause = broker.lifecycle.preStop.sleep.seconds;
    expect(pause).toBeGreaterThan(0);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(pause + config.shutdown.drainTimeoutMs / 1_000);
  });

  test('the configuration is complete: keys, the fleet’s store, an engine with TLS or a socket', () => {
    const { config, values, environment, configText } = get(name);
    expect(config.auth.keys.length).toBe((values.config?.auth?.keys ?? [1]).length);
    expect(config.runtime.docker.engine.kind).toBe(values.engine.mode === 'node' ? 'socket' : 'tcp');
    if (config.runtime.docker.engine.kind === 'tcp') expect(config.runtime.docker.engine.tls).not.toBeNull();
    expect(config.store.type).toBe(name === 'memory' ? 'memory' : 'redis');
    for (const value of Object.values(environment)) {
      if (value.startsWith('not-a-real')) expect(configText).not.toContain(value);
    }
  });
});
