import {
  type AlertCase,
  at,
  build,
  engine,
  fleet,
  follows,
  historyAt,
  historyInterval,
  images,
  interval,
  lease,
  owned,
  readyA,
  readyB,
  reconciledAt,
  renewedAt,
  replicaA,
  runs,
  store,
  storeCalls,
  storeFailures,
} from './alert-samples.ts';

/** Up and connected, leases and the store. */
export const STATE_CASES: readonly AlertCase[] = [
  {
    alert: 'SandboxBrokerFleetDown',
    pending: 3,
    fires: {
      series: { [build]: '1x30', [readyA]: '1x2 0x30', [readyB]: '1x2 _x30' },
      at: 10,
      labels: fleet,
      summary: 'No replica of broker is ready',
    },
    quiet: [
      { series: { [build]: '1x30', [readyA]: '0x30', [readyB]: '1x30' }, at: 10 },
      { series: { [build]: '1x30', [readyA]: '1x2 0 1x30' }, at: 4 },
    ],
  },
  {
    alert: 'SandboxBrokerReplicaDown',
    pending: 4,
    fires: {
      series: { [at('up')]: '1x2 0x30', [build]: '1x2 stale' },
      at: 6,
      labels: replicaA,
      summary: 'Replica a of broker does not answer',
    },
    quiet: [
      { series: { [at('up')]: '0x30' }, at: 10 }, // none of ours
      { series: { [at('up')]: '1x2 0x1 1x30', [build]: '1x30' }, at: 5 },
    ],
  },
  {
    alert: 'SandboxBrokerReplicaNotReady',
    pending: 4,
    fires: {
      series: { [readyA]: '0x30' },
      at: 6,
      labels: replicaA,
      summary: 'Replica a of broker runs and has not been ready for 5 minutes',
    },
    quiet: [{ series: { [readyA]: '0x3 1x30' }, at: 8 }],
  },
  {
    alert: 'SandboxBrokerStoreDown',
    pending: 3,
    fires: {
      series: { [store('a')]: '1x2 0x30', [store('b')]: '1x2 0x30', [store('c')]: '1x30' },
      at: 5,
      labels: fleet,
      summary: '2 replica(s) of broker get no answer from Redis',
    },
    quiet: [
      { series: { [store('a')]: '1x2 0 1x30' }, at: 4 },
      { series: { [engine('a')]: '0x30' }, at: 5 },
    ],
  },
  {
    alert: 'SandboxBrokerStoreFailing',
    pending: 5,
    fires: {
      // The last call of each minute succeeds.
      series: { [storeFailures('store_unavailable')]: '0+20x30', [storeCalls]: '0+80x30', [store('a')]: '1x30' },
      at: 12,
      labels: fleet,
      summary: '25% of the calls of broker to Redis fail',
    },
    quiet: [
      // Away for half a minute.
      { series: { [storeFailures('store_unavailable')]: '0x4 30x30', [storeCalls]: '0+80x30' }, at: 9 },
      { series: { [storeFailures('record_unreadable')]: '0+20x30', [storeCalls]: '0+80x30' }, at: 12 },
    ],
  },
  {
    alert: 'SandboxBrokerEngineDown',
    pending: 4,
    fires: {
      series: { [engine('a')]: '1x2 0x30', [engine('b')]: '1x30' },
      at: 6,
      labels: fleet,
      summary: '1 replica(s) of broker get no answer from the container engine',
    },
    quiet: [
      { series: { [engine('a')]: '1x2 0x1 1x30' }, at: 5 },
      { series: { [store('a')]: '0x30' }, at: 6 },
    ],
  },
  {
    alert: 'SandboxBrokerEngineSwapped',
    fires: {
      series: { [at('engine_mismatches_total')]: '0x2 1+1x30' },
      at: 5,
      labels: replicaA,
      summary: 'Replica a of broker uses another container engine, or another lease store, than its deployment',
    },
    quiet: [{ series: { [at('engine_mismatches_total')]: '7x30' }, at: 10 }],
  },
  {
    alert: 'SandboxBrokerEngineEventsLost',
    pending: 11,
    fires: {
      series: { [follows()]: '1x2 0x30', [engine('a')]: '1x30', [follows('b')]: '1x30', [engine('b')]: '1x30' },
      at: 14,
      labels: replicaA,
      summary: 'Replica a of broker does not hear what happens in the container engine',
    },
    quiet: [
      { series: { [follows()]: '1x2 0x5 1x30', [engine('a')]: '1x30' }, at: 14 },
      { series: { [follows()]: '0x30', [engine('a')]: '0x30' }, at: 14 }, // told by SandboxBrokerEngineDown
    ],
  },
  {
    alert: 'SandboxBrokerReplicasDiffer',
    pending: 61,
    fires: {
      series: { [runs('1.0.0', 'a')]: '1x80', [runs('1.0.0', 'b')]: '1x2 _x78', [runs('1.1.0', 'b')]: '_x2 1x78' },
      at: 64,
      labels: fleet,
      summary: 'Replicas of broker run different versions or settings, and have for an hour',
    },
    alsoFires: [
      { [at('fleet_capacity_max')]: '100x80', [at('fleet_capacity_max', '', 'b')]: '200x80' },
      { [lease]: '30x80', [at('lease_duration_seconds', '', 'b')]: '60x80' },
    ],
    quiet: [
      // A rollout of some minutes.
      {
        series: { [runs('1.0.0', 'a')]: '1x80', [runs('1.0.0', 'b')]: '1x2 _x78', [runs('1.1.0', 'a')]: '_x2 1x5' },
        at: 70,
      },
      {
        series: {
          ...{ [runs('1.0.0', 'a')]: '1x80', [runs('1.0.0', 'b')]: '1x80', [lease]: '30x80' },
          ...{ [at('fleet_capacity_max')]: '100x80', [at('fleet_capacity_max', '', 'b')]: '100x80' },
        },
        at: 70,
      },
    ],
  },
  {
    alert: 'SandboxBrokerImageMissing',
    pending: 12,
    fires: {
      series: { [images('a')]: '1x2 0x30', [images('b')]: '1x30' },
      at: 13,
      labels: fleet,
      summary: 'An image of a profile of broker is not in the engine and cannot be pulled',
    },
    quiet: [{ series: { [images('a')]: '1x2 0x5 1x30' }, at: 13 }],
  },
  {
    alert: 'SandboxBrokerLeaseNotRenewed',
    fires: {
      series: { [renewedAt]: '540x30', [lease]: '30x30' },
      at: 10,
      labels: replicaA,
      summary: 'Replica a of broker has not renewed its leases for 1m 0s',
    },
    quiet: [
      { series: { [renewedAt]: '580x30', [lease]: '30x30' }, at: 10 },
      // Renewed just before each scrape; the last scrape was a minute ago.
      { series: { [renewedAt]: '0+120x10', [lease]: '30x10' }, at: 11, every: 2 },
      { series: { [reconciledAt]: '100x30', [lease]: '30x30' }, at: 10 },
    ],
  },
  {
    alert: 'SandboxBrokerAdoptionStorm',
    fires: {
      series: {
        [at('adoptions_total')]: '0+10x30',
        [at('adoptions_total', '', 'b')]: '0x30',
        [owned('active')]: '10x30',
        [owned('warm', 'b')]: '20x30',
      },
      at: 20,
      labels: fleet,
      summary: 'Sandboxes of broker changed hands 150 times in 15 minutes, more than three times each',
    },
    quiet: [
      { series: { [at('adoptions_total')]: '0x5 0+20x3 60x30', [owned('active')]: '30x30' }, at: 20 }, // a rolling restart
      { series: { [at('adoptions_total')]: '0+1x30', [owned('active')]: '2x30' }, at: 20 },
    ],
  },
  {
    alert: 'SandboxBrokerStoreLostRecords',
    fires: {
      series: { [at('leases_reasserted_total')]: '0x4 10x30' },
      at: 10,
      labels: fleet,
      summary: 'Redis lost records of broker; 10 were written again',
    },
    quiet: [{ series: { [at('leases_reasserted_total')]: '12x30' }, at: 20 }],
  },
  {
    alert: 'SandboxBrokerRecordUnreadable',
    pending: 14,
    fires: {
      series: { [at('fleet_records_unreadable')]: '2x30', [at('fleet_records_unreadable', '', 'b')]: '1x30' },
      at: 20,
      labels: fleet,
      summary: '2 record(s) of broker cannot be read',
    },
    quiet: [{ series: { [at('fleet_records_unreadable')]: '2x8 0x30' }, at: 20 }],
  },
  {
    alert: 'SandboxBrokerLoopStalled',
    pending: 11,
    fires: {
      series: { [reconciledAt]: '60x30', [interval]: '30x30' },
      at: 16,
      labels: { ...replicaA, loop: 'reconcile' },
      summary: 'Loop reconcile of replica a of broker has not succeeded for 15m 0s',
    },
    quiet: [
      { series: { [reconciledAt]: '60x30', [interval]: '600x30' }, at: 16 },
      // A loop that runs four times a second and waits for a slow store now and then.
      { series: { [historyAt]: '-10+60x30', [historyInterval]: '0.25x30' }, at: 16 },
      { series: { [reconciledAt]: '0+240x10', [interval]: '5x10' }, at: 19, every: 4 },
      { series: { [reconciledAt]: '0+60x30', [interval]: '30x30' }, at: 16 },
    ],
  },
];
