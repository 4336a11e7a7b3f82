import {
  type AlertCase,
  acquires,
  answered,
  at,
  build,
  failed,
  fleet,
  lease,
  owned,
  replicaA,
} from './alert-samples.ts';

/** Capacity, removals and the service. */
export const SERVICE_CASES: readonly AlertCase[] = [
  {
    alert: 'SandboxBrokerCapacityNearFull',
    pending: 9,
    fires: {
      series: {
        [owned('active')]: '60x30',
        [owned('starting', 'b')]: '35x30',
        [owned('warm', 'b')]: '5x30',
        [at('fleet_capacity_max')]: '100x30',
        [at('fleet_capacity_max', '', 'b')]: '100x30',
      },
      at: 15,
      labels: fleet,
      summary: '95% of the sandboxes that broker may have are in use',
    },
    quiet: [
      {
        series: { [owned('active')]: '60x30', [owned('warm')]: '40x30', [at('fleet_capacity_max')]: '100x30' },
        at: 15,
      },
      { series: { [owned('active')]: '500x30', [at('fleet_capacity_max')]: '0x30' }, at: 15 },
    ],
  },
  {
    alert: 'SandboxBrokerCapacityExhausted',
    pending: 5,
    fires: {
      series: { [failed('capacity_exhausted')]: '0+2x30' },
      at: 12,
      labels: fleet,
      summary: 'broker is full: 10 callers were refused in 5 minutes',
    },
    quiet: [
      { series: { [failed('capacity_exhausted')]: '0x4 1x30' }, at: 8 },
      { series: { [failed('user_capacity_exhausted')]: '0+2x30' }, at: 12 },
    ],
  },
  {
    alert: 'SandboxBrokerSparesMissing',
    pending: 14,
    fires: {
      series: {
        [at('fleet_spares_ready', 'profile="default"')]: '1x30',
        [at('fleet_spares_wanted', 'profile="default"')]: '3x30',
      },
      at: 20,
      labels: { ...fleet, profile: 'default' },
      summary: 'broker has 1 spare(s) of profile default, fewer than wanted, for 15 minutes',
    },
    quiet: [
      {
        series: {
          [at('fleet_spares_ready', 'profile="default"')]: '0x10 3x30',
          [at('fleet_spares_wanted', 'profile="default"')]: '3x30',
        },
        at: 20,
      },
      {
        series: {
          [at('fleet_spares_ready', 'profile="default"')]: '0x30',
          [at('fleet_spares_wanted', 'profile="default"')]: '0x30',
        },
        at: 20,
      },
    ],
  },
  {
    alert: 'SandboxBrokerTeardownStuck',
    fires: {
      series: {
        [at('teardown_oldest_open_seconds')]: '0+60x30',
        [at('teardown_oldest_open_seconds', '', 'b')]: '0x30',
      },
      at: 15,
      labels: replicaA,
      summary: 'Replica a of broker has tried to remove a container for 15m 0s',
    },
    quiet: [
      { series: { [at('teardown_oldest_open_seconds')]: '0+60x5 0x30' }, at: 15 },
      { series: { [at('teardown_oldest_open_seconds')]: '0+30x30' }, at: 15 },
    ],
  },
  {
    alert: 'SandboxBrokerLeakSuspected',
    fires: {
      series: { [at('fleet_suspect_oldest_seconds')]: '0+60x30', [lease]: '30x30' },
      at: 15,
      labels: fleet,
      summary: 'A container of broker has been accounted for by no record for 15m 0s',
    },
    quiet: [
      { series: { [at('fleet_suspect_oldest_seconds')]: '0+15x3 0x30', [lease]: '30x30' }, at: 15 },
      { series: { [at('fleet_suspect_oldest_seconds')]: '0+60x30', [lease]: '120x30' }, at: 15 },
    ],
  },
  {
    alert: 'SandboxBrokerAcquireErrors',
    pending: 5,
    fires: {
      series: { [failed('runtime_unavailable')]: '0+6x30', [answered]: '0+60x30' },
      at: 12,
      labels: fleet,
      summary: '10% of the acquires of broker fail',
    },
    quiet: [
      { series: { [failed('runtime_unavailable')]: '0+1x30', [answered]: '0+60x30' }, at: 12 },
      { series: { [failed('capacity_exhausted')]: '0+30x30', [answered]: '0+60x30' }, at: 12 },
      { series: { [failed('runtime_unavailable')]: '0x30', [answered]: '0x30' }, at: 12 },
    ],
  },
  {
    alert: 'SandboxBrokerReacquireSlow',
    pending: 10,
    fires: {
      series: {
        [acquires('reused', '0.5')]: '0+50x30',
        [acquires('reused', '1')]: '0+100x30',
        [acquires('reused', '+Inf')]: '0+100x30',
      },
      at: 20,
      labels: fleet,
      summary: 'One of a hundred re-acquires of broker takes 990ms or more',
    },
    quiet: [
      {
        series: { [acquires('reused', '0.01')]: '0+100x30', [acquires('reused', '+Inf')]: '0+100x30' },
        at: 20,
      },
      {
        series: { [acquires('created', '0.5')]: '0x30', [acquires('created', '+Inf')]: '0+100x30' },
        at: 20,
      },
    ],
  },
  {
    alert: 'SandboxBrokerColdStartSlow',
    pending: 10,
    fires: {
      series: {
        [acquires('created', '30')]: '0x40',
        [acquires('created', '60')]: '0+10x40',
        [acquires('created', '+Inf')]: '0+10x40',
      },
      at: 30,
      labels: fleet,
      summary: 'One of ten cold starts of broker takes 57s or more',
    },
    quiet: [{ series: { [acquires('created', '30')]: '0+10x40', [acquires('created', '+Inf')]: '0+10x40' }, at: 30 }],
  },
  {
    alert: 'SandboxBrokerSandboxesDying',
    fires: {
      series: { [at('endings_total')]: '0+1x30', [owned('active')]: '40x30' },
      at: 20,
      labels: fleet,
      summary: '15 sandboxes of broker ended by themselves in 15 minutes',
    },
    quiet: [
      { series: { [at('endings_total')]: '0+1x30', [owned('active')]: '100x30' }, at: 20 },
      { series: { [at('endings_total')]: '0x10 3x30', [owned('active')]: '4x30' }, at: 20 },
    ],
  },
  {
    alert: 'SandboxBrokerInternalErrors',
    fires: {
      series: {
        [at('http_request_duration_seconds_count', 'method="POST",route="/v1/sandboxes",status="500"')]: '0+1x30',
      },
      at: 12,
      labels: replicaA,
      summary: 'Replica a of broker answered 10 requests with 500 in 10 minutes',
    },
    quiet: [
      {
        series: {
          [at('http_request_duration_seconds_count', 'method="POST",route="/v1/sandboxes",status="503"')]: '0+1x30',
        },
        at: 12,
      },
      {
        series: {
          [at('http_request_duration_seconds_count', 'method="POST",route="/v1/sandboxes",status="500"')]: '3x30',
        },
        at: 12,
      },
    ],
  },
  {
    alert: 'SandboxBrokerEventLoopBlocked',
    pending: 4,
    fires: {
      series: { [at('nodejs_eventloop_lag_p99_seconds')]: '0.4x30', [build]: '1x30' },
      at: 8,
      labels: replicaA,
      summary: 'Replica a of broker is late by 400ms',
    },
    quiet: [
      { series: { [at('nodejs_eventloop_lag_p99_seconds')]: '0.4x30' }, at: 8 }, // some other program
      { series: { [at('nodejs_eventloop_lag_p99_seconds')]: '0.02x30', [build]: '1x30' }, at: 8 },
    ],
  },
];
