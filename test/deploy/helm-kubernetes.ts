import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import { messageOf } from '../../src/domain/errors.ts';
import type { Tree } from './helm-chart.ts';

const MODELS: Readonly<Record<string, new (data: Tree) => { validate(): void }>> = {
  'apps/v1/Deployment': Deployment,
  'apps/v1/StatefulSet': StatefulSet,
  'networking.k8s.io/v1/NetworkPolicy': NetworkPolicy,
  'policy/v1/PodDisruptionBudget': PodDisruptionBudget,
  'v1/ConfigMap': ConfigMap,
  'v1/Secret': Secret,
  'v1/Service': Service,
  'v1/ServiceAccount': ServiceAccount,
};
/** Of the Prometheus operator; the tests look at these as a whole. */
const OTHERS = ['monitoring.coreos.com/v1/ServiceMonitor', 'monitoring.coreos.com/v1/PrometheusRule'];
/** Of no type that a field could have. */
const WRONG = Symbol('wrong');

/** What Kubernetes would refuse of an object: wrong types, missing fields, fields that it does not know. */
export function problemsOf(object: Tree): string[] {
  const kind = `${object.apiVersion}/${object.kind}`;
  if (OTHERS.includes(kind)) return [];
  const Model = MODELS[kind];
  if (Model === undefined) return [`${kind} is not a kind that is expected`];
  const check = (): string | null => {
    try {
      new Model(object).validate();
      return null;
    } catch (error) {
      return messageOf(error);
    }
  };
  const problem = check();
  if (problem !== null) return [problem];
  // The models pass over what they do not know: a field may then hold anything without their complaint.
  const unknown: string[] = [];
  const visit = (parent: Tree, at: string): void => {
    for (const [key, value] of Object.entries(parent)) {
      parent[key] = WRONG;
      if (check() === null) unknown.push(`${at}${key} is not known`);
      parent[key] = value;
      if (typeof value === 'object' && value !== null) visit(value, `${at}${key}.`);
    }
  };
  visit(object, '');
  return unknown;
}
