import { EXAMPLES, over, type Tree } from './helm-chart.ts';

/** Values that lead to every template, with and without what is optional. */
export const MATRIX: Readonly<Record<string, Tree>> = {
  ...EXAMPLES,
  'bundled, certificates there, Redis elsewhere': over(EXAMPLES.bundled, {
    engine: {
      bundled: {
        tlsSecret: 'engine-certificates',
        extraArgs: ['--mtu=1400'],
        persistence: { storageClass: 'fast' },
        priorityClassName: 'sandboxes',
        podDisruptionBudget: { enabled: false },
      },
    },
    redis: { bundled: false },
    config: { store: { url: 'rediss://redis.example.com/1' }, server: { host: '::', port: 9090 } },
    networkPolicy: {
      egress: [{ to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ port: 6379, protocol: 'TCP' }] }],
    },
  }),
  'remote, everything else given': over(EXAMPLES.remote, {
    replicaCount: 1,
    fullnameOverride: 'sandboxes',
    commonLabels: { team: 'agents' },
    imagePullSecrets: [{ name: 'registry' }],
    extraVolumes: [{ name: 'more', emptyDir: {} }],
    extraVolumeMounts: [{ name: 'more', mountPath: '/more' }],
    podAnnotations: { note: 'x' },
    podLabels: { mesh: 'off' },
    nodeSelector: { pool: 'system' },
    tolerations: [{ key: 'system', operator: 'Exists' }],
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    priorityClassName: 'high',
    redis: {
      nodeSelector: { pool: 'data' },
      tolerations: [{ operator: 'Exists' }],
      persistence: { storageClass: 'fast' },
      priorityClassName: 'data',
    },
    service: { type: 'LoadBalancer', port: 80, annotations: { internal: 'true' } },
    serviceAccount: { name: 'sandboxes', annotations: { a: 'b' } },
    dashboard: { enabled: true, annotations: { folder: 'Agents' } },
    config: { runtime: { docker: { advertiseHost: 'sandboxes.example.com' } }, capacity: { max: '${MAX:-50}' } },
  }),
};
