import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CHART, NAME, NAMESPACE, Rendered, type Tree } from './helm-chart.ts';
import { MATRIX } from './helm-matrix.ts';

const names = Object.keys(MATRIX);
const rendered = new Map<string, Rendered>();
const get = (name: string): Rendered => rendered.get(name)!;

beforeAll(async () => {
  for (const [name, values] of Object.entries(MATRIX)) rendered.set(name, await Rendered.of(values));
});

test('a rolling update has no gap; a memory store never runs twice', () => {
  for (const name of names) {
    const given = get(name);
    const memory = given.config.store.type === 'memory';
    expect(given.find('Deployment').spec.strategy).toEqual(
      memory ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    );
    const many = given.find('Deployment').spec.replicas > 1;
    expect(given.find('PodDisruptionBudget')?.spec.maxUnavailable).toBe(many ? 1 : undefined);
  }
});

test('nothing but somebody who deletes it ends the pod that has every sandbox in it', () => {
  const engine = get('bundled').find('StatefulSet', '-engine').spec;
  expect(engine.updateStrategy).toEqual({ type: 'OnDelete' });
  expect(engine.template.metadata.annotations['cluster-autoscaler.kubernetes.io/safe-to-evict']).toBe('false');
  expect(get('bundled').find('PodDisruptionBudget', '-engine').spec).toMatchObject({
    maxUnavailable: 0,
    selector: { matchLabels: engine.selector.matchLabels },
  });
  const other = get('bundled, certificates there, Redis elsewhere');
  expect(other.find('PodDisruptionBudget', '-engine')).toBeUndefined();
  expect(other.find('StatefulSet', '-engine').spec.template.spec.priorityClassName).toBe('sandboxes');
  const redis = get('remote, everything else given').find('StatefulSet', '-redis').spec.template.spec;
  expect(redis.priorityClassName).toBe('data');
  for (const name of ['remote', 'node']) expect(get(name).find('PodDisruptionBudget', '-engine')).toBeUndefined();
});

test('urls name what gateways reach: the engine’s host, the engine’s pod, the node', () => {
  const docker = (name: string): Tree => get(name).config.runtime.docker;
  const pod = `${NAME}-engine.${NAMESPACE}.svc`;
  expect(docker('remote')).toMatchObject({
    advertiseHost: 'engine.example.com',
    bindHost: '10.20.30.40',
    probeHost: 'engine.example.com',
    engine: { kind: 'tcp', host: 'engine.example.com', port: 2376 },
  });
  // Brokers look for themselves where the engine is, whatever gateways are told.
  expect(docker('remote, everything else given')).toMatchObject({
    advertiseHost: 'sandboxes.example.com',
    probeHost: 'engine.example.com',
  });
  expect(docker('bundled')).toMatchObject({
    advertiseHost: pod,
    bindHost: '0.0.0.0',
    probeHost: pod,
    engine: { kind: 'tcp', host: pod, port: 2376 },
  });
  expect(get('bundled').find('Service', '-engine').spec).toMatchObject({ clusterIP: 'None', ports: [{ port: 2376 }] });
  expect(docker('node')).toMatchObject({
    advertiseHost: '10.0.0.11',
    bindHost: '10.0.0.11',
    probeHost: '10.0.0.11',
    engine: { kind: 'socket', socketPath: '/var/run/docker.sock' },
  });
  expect(docker('memory')).toMatchObject({ address: 'network', network: 'sandboxes', engine: { port: 2377 } });
  expect(get('memory').configText).not.toContain('advertiseHost');
});

test('one engine: in mode node every replica is pinned to that node and opens its socket; else there is no host path', () => {
  for (const name of names) {
    const { pod, broker, values } = get(name);
    const paths = pod.volumes.flatMap(({ hostPath }: Tree) => hostPath ?? []);
    if (values.engine.mode !== 'node') {
      expect(paths).toEqual([]);
      continue;
    }
    expect(paths).toEqual([{ path: '/var/run/docker.sock', type: 'Socket' }]);
    expect(broker.volumeMounts[1]).toEqual({ name: 'engine-socket', mountPath: '/var/run/docker.sock' });
    expect(pod.securityContext.supplementalGroups).toEqual([998]);
    const [term, ...others] =
      pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    expect(others).toEqual([]);
    expect(term).toEqual({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['worker-1'] }] });
    expect(pod.topologySpreadConstraints).toBeUndefined();
  }
  for (const { spec } of get('bundled').all('StatefulSet')) expect(spec.replicas).toBe(1);
});

test('the bundled Redis keeps what it has, evicts nothing, and wants the password that brokers send', () => {
  const given = get('bundled');
  const { spec, metadata } = given.find('StatefulSet', '-redis');
  const [{ args, env }] = spec.template.spec.containers;
  const option = (name: string): string => args[args.indexOf(name) + 1];
  expect(option('--maxmemory-policy')).toBe('noeviction');
  expect(option('--appendonly')).toBe('yes');
  expect(option('--save')).toBe('');
  expect(option('--requirepass')).toBe('$(REDIS_PASSWORD)');
  expect(spec.volumeClaimTemplates[0].spec.resources.requests.storage).toBe('2Gi');
  expect(spec.template.spec.containers[0].volumeMounts[0].mountPath).toBe(option('--dir'));
  const { name, key } = env[0].valueFrom.secretKeyRef;
  const url = new URL(given.config.store.url!);
  expect(url.password).toBe(given.secretData(name)![key]);
  expect(`${url.hostname}:${url.port}`).toBe(`${metadata.name}:${given.find('Service', '-redis').spec.ports[0].port}`);
  for (const other of ['node', 'memory']) expect(get(other).find('StatefulSet', '-redis')).toBeUndefined();
});

test('Redis is reached by brokers alone, the engine by brokers, its sandboxes by clients, too', () => {
  const given = get('bundled');
  const broker = { podSelector: { matchLabels: given.find('Deployment').spec.selector.matchLabels } };
  const { clients, monitoring } = given.values.networkPolicy;
  const published = [{ port: 32768, endPort: 60999, protocol: 'TCP' }];
  expect(given.find('NetworkPolicy').spec.ingress).toEqual([
    { from: [...clients, ...monitoring], ports: [{ port: 'http', protocol: 'TCP' }] },
  ]);
  expect(given.find('NetworkPolicy', '-redis').spec).toMatchObject({
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [broker], ports: [{ port: 'redis', protocol: 'TCP' }] }],
  });
  expect(given.find('NetworkPolicy', '-redis').spec.egress).toBeUndefined();
  expect(given.find('NetworkPolicy', '-engine').spec.ingress).toEqual([
    { from: [broker], ports: [{ port: 'engine', protocol: 'TCP' }] },
    { from: [broker, ...clients], ports: published },
  ]);
  const [, out] = given.find('NetworkPolicy', '-engine').spec.egress;
  expect(out.to[0].ipBlock.except).toContain('169.254.0.0/16');
  expect(given.find('NetworkPolicy').spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(get('remote').find('NetworkPolicy').spec.policyTypes).toEqual(['Ingress']);
  expect(get('memory').all('NetworkPolicy')).toEqual([]);
});

test('the runbook’s commands for the chart name what the chart makes', () => {
  const runbook = readFileSync(resolve(CHART, '../../docs/runbook.md'), 'utf8');
  const [, block = ''] = /```sh\n(# The chart: .*?)```/s.exec(runbook) ?? [];
  const given = get('bundled');
  for (const ending of ['-redis', '-engine']) {
    expect(block).toContain(`"$NAME${ending}-0"`);
    expect(given.find('StatefulSet', ending)).toBeDefined();
  }
  expect(block).toContain('DEPLOYMENT=$NAMESPACE.$NAME');
  expect(given.config.deployment).toBe(`${NAMESPACE}.${NAME}`);
  expect(block).toContain(`get secret "$NAME" -o jsonpath='{.data.BROKER_API_KEY}'`);
  expect(given.secretData(NAME)).toHaveProperty('BROKER_API_KEY');
  expect(block).toContain('-l app.kubernetes.io/component=broker');
  expect(given.find('Deployment').spec.template.metadata.labels['app.kubernetes.io/component']).toBe('broker');
});

test('rules and dashboard are the files, with links to where the runbook is', () => {
  const read = (file: string): string => readFileSync(resolve(CHART, 'files', file), 'utf8');
  const given = get('bundled');
  const rules = read('alerts.yaml').replaceAll('docs/runbook.md', 'https://docs.example.com/runbook');
  expect(rules).toContain('https://docs.example.com/runbook#');
  expect(given.find('PrometheusRule').spec).toEqual(parse(rules));
  const dashboard = given.find('ConfigMap', '-dashboard');
  const shown = (name: string): Tree =>
    JSON.parse(get(name).find('ConfigMap', '-dashboard').data['sandbox-broker.json']);
  const link = { type: 'link', title: 'Runbook', url: 'https://docs.example.com/runbook' };
  expect(shown('bundled')).toEqual({ ...JSON.parse(read('dashboard.json')), links: [expect.objectContaining(link)] });
  // Not published: a link would lead to Grafana itself.
  expect(shown('remote, everything else given')).toEqual(JSON.parse(read('dashboard.json')));
  expect(dashboard.metadata.labels.grafana_dashboard).toBe('1');
  expect(given.find('ServiceMonitor').metadata.labels.release).toBe('prometheus');
  for (const kind of ['ServiceMonitor', 'PrometheusRule']) expect(get('remote').all(kind)).toEqual([]);
});
