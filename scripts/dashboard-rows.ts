/** The dashboard, row by row, as an operator reads it: from "is it up" down to "which replica". */

export interface Query {
  readonly expr: string;
  /** How its series are called; `{{label}}` stands for a label's value. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  readonly kind: 'stat' | 'timeseries';
  readonly unit: 'short' | 's' | 'ops' | 'bytes' | 'bool';
  readonly description: string;
  readonly queries: readonly Query[];
  /** From here on it is yellow, and red. With the second one smaller, low is bad. */
  readonly limits?: readonly [number, number];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** A metric of the fleets that were chosen. */
const m = (name: string, labels = ''): string =>
  `${/^(up|ALERTS|process_|nodejs_)/.test(name) ? '' : 'sandbox_broker_'}${name}{job=~"$job"${labels === '' ? '' : `,${labels}`}}`;
const rate = (name: string, labels = ''): string => `rate(${m(name, labels)}[$__rate_interval])`;
const orZero = (expr: string): string => `${expr} or vector(0)`;
const quantile = (q: number, name: string, by: string, labels = ''): string =>
  `histogram_quantile(${q}, sum by (${by === '' ? 'le' : `le, ${by}`}) (${rate(`${name}_bucket`, labels)}))`;
/** When it was scraped: how far apart scrapes are does not matter. */
const age = (labels = ''): string => {
  const at = m('loop_last_success_timestamp_seconds', labels);
  return `timestamp(${at}) - ${at}`;
};
const q = (legend: string, expr: string): Query => ({ legend, expr });

const stat = (title: string, unit: Panel['unit'], description: string, expr: string, limits?: [number, number]) =>
  ({
    kind: 'stat',
    title,
    unit,
    description,
    queries: [q('', expr)],
    ...(limits === undefined ? {} : { limits }),
  }) as const;
const graph = (title: string, unit: Panel['unit'], description: string, ...queries: Query[]) =>
  ({ kind: 'timeseries', title, unit, description, queries }) as const;

const AGAIN = 'origin=~"reused|reclaimed"';
const OURS = 'and on (job, instance) sandbox_broker_build_info';

export const ROWS: readonly Row[] = [
  {
    title: 'Is it up?',
    panels: [
      stat('Replicas ready', 'short', 'Replicas that want traffic.', orZero(`sum(${m('ready')})`), [2, 1]),
      stat(
        'Replicas silent',
        'short',
        'Targets that were a broker within the last hour and cannot be scraped.',
        orZero(`count(${m('up')} == 0 and on (job, instance) max_over_time(${m('build_info')}[1h]))`),
        [1, 2],
      ),
      stat('Redis', 'bool', 'Worst of all replicas.', `min(${m('dependency_up', 'dependency="store"')})`, [1, 0]),
      stat('Engine', 'bool', 'Worst of all replicas.', `min(${m('dependency_up', 'dependency="engine"')})`, [1, 0]),
      stat(
        'Oldest renewal',
        's',
        'How long ago the replica that is furthest behind renewed its leases.',
        `max(${age('loop="renewal"')})`,
        [20, 30],
      ),
      stat(
        'Alerts firing',
        'short',
        'docs/runbook.md has a section for each.',
        orZero(`count(${m('ALERTS', 'alertname=~"SandboxBroker.+",alertstate="firing"')})`),
        [1, 3],
      ),
      graph(
        'Acquires',
        'ops',
        'Handed out, by how the caller came by it.',
        q('{{origin}}', `sum by (origin) (${rate('acquire_duration_seconds_count', 'outcome="ready"')})`),
      ),
      graph(
        'Acquires that failed',
        'ops',
        'By problem code.',
        q('{{code}}', `sum by (code) (${rate('acquire_failures_total')}) > 0`),
        q('all', `sum(${rate('acquire_failures_total')})`),
      ),
      graph(
        'HTTP answers',
        'ops',
        'By status; 0: the client hung up.',
        q('{{status}}', `sum by (status) (${rate('http_request_duration_seconds_count', 'route=~"/v1/.*"')})`),
      ),
    ],
  },
  {
    title: 'Is it quick?',
    panels: [
      graph(
        'Re-acquire',
        's',
        'A ready sandbox handed out again: one call of Redis, none of the engine.',
        q('p50', quantile(0.5, 'acquire_duration_seconds', '', AGAIN)),
        q('p99', quantile(0.99, 'acquire_duration_seconds', '', AGAIN)),
      ),
      graph(
        'First acquire',
        's',
        'Half of them and nine of ten, by origin.',
        q('{{origin}} p50', quantile(0.5, 'acquire_duration_seconds', 'origin', 'origin=~"created|spare"')),
        q('{{origin}} p90', quantile(0.9, 'acquire_duration_seconds', 'origin', 'origin=~"created|spare"')),
      ),
      graph(
        'Cold start by step',
        's',
        'Nine of ten take less. ready: from the start to the first answer.',
        q('{{step}}', quantile(0.9, 'start_step_duration_seconds', 'step')),
      ),
      graph(
        'Redis calls',
        's',
        '99 of 100 take less.',
        q('{{call}}', quantile(0.99, 'store_call_duration_seconds', 'call')),
      ),
      graph(
        'Engine calls',
        's',
        'Nine of ten take less.',
        q('{{call}}', quantile(0.9, 'engine_call_duration_seconds', 'call')),
      ),
      graph(
        'Calls that failed',
        'ops',
        'By dependency and problem code.',
        q('redis {{code}}', `sum by (code) (${rate('store_call_failures_total')})`),
        q('engine {{code}}', `sum by (code) (${rate('engine_call_failures_total')})`),
      ),
    ],
  },
  {
    title: 'Is it full?',
    panels: [
      graph(
        'Sandboxes',
        'short',
        "By state, counted by their owners. A dead replica's are missing until they are adopted.",
        q('{{state}}', `sum by (state) (${m('sandboxes_owned')})`),
      ),
      graph(
        'Slots',
        'short',
        'Warm sandboxes give way to whoever comes, so full is when those in use reach the limit.',
        q('in use', `sum(${m('sandboxes_owned', 'state!="warm"')})`),
        q('with warm ones', `max(sum by (instance) (${m('fleet_sandboxes')}))`),
        q('limit', `max(${m('fleet_capacity_max')})`),
      ),
      graph(
        'Waiting and refused',
        'short',
        'Callers in line now; refusals a second.',
        q('waiting', `sum(${m('capacity_waiting')})`),
        q('{{code}} a second', `sum by (code) (${rate('acquire_failures_total', 'code=~".*capacity_exhausted"')})`),
      ),
      graph(
        'Spares',
        'short',
        'Ready and wanted, by profile.',
        q('{{profile}} ready', `max by (profile) (${m('fleet_spares_ready')})`),
        q('{{profile}} wanted', `max by (profile) (${m('fleet_spares_wanted')})`),
      ),
      graph('Spare starts', 'ops', 'By outcome.', q('{{outcome}}', `sum by (outcome) (${rate('spare_starts_total')})`)),
      graph('Image pulls', 'ops', 'By outcome.', q('{{outcome}}', `sum by (outcome) (${rate('image_pulls_total')})`)),
    ],
  },
  {
    title: 'Is it leaking?',
    panels: [
      graph(
        'Containers',
        'short',
        'What runs, and what accounts for it: the lines should meet.',
        q('containers', `max(${m('fleet_containers')})`),
        q(
          'sandboxes and spares',
          `max(sum by (instance) (${m('fleet_sandboxes')})) + max(sum by (instance) (${m('fleet_spares_ready')}))`,
        ),
      ),
      graph(
        'Suspects',
        's',
        'For how long a container has been accounted for by no record.',
        q('oldest', `max(${m('fleet_suspect_oldest_seconds')})`),
      ),
      graph(
        'Open teardowns',
        's',
        'For how long a container that should go has been there.',
        q('oldest', `max(${m('teardown_oldest_open_seconds')})`),
      ),
      graph(
        'Removals',
        'ops',
        'By reason.',
        q('{{reason}}', `sum by (reason) (${rate('removals_total', 'outcome="removed"')}) > 0`),
        q('all', `sum(${rate('removals_total', 'outcome="removed"')})`),
      ),
      graph(
        'Removals that failed or stopped',
        'ops',
        'failed: tried again. stopped: somebody came to hold it, or somebody else finishes it.',
        q('{{outcome}}', `sum by (outcome) (${rate('removals_total', 'outcome!="removed"')})`),
      ),
      graph(
        'Ended by themselves',
        'ops',
        'Out of memory, a crash, or somebody who removes containers.',
        q('ended', `sum(${rate('endings_total')})`),
      ),
    ],
  },
  {
    title: 'Which replica?',
    panels: [
      graph('Answers', 'bool', '1 while it can be scraped.', q('{{instance}}', `${m('up')}`)),
      graph(
        'Owned sandboxes',
        'short',
        'By replica.',
        q('{{instance}}', `sum by (instance) (${m('sandboxes_owned')})`),
      ),
      graph(
        'Adopted',
        'short',
        'Since the start of each replica.',
        q('{{instance}}', `sum by (instance) (${m('adoptions_total')})`),
      ),
      graph(
        'Leases',
        'ops',
        'lost: a peer took over. reasserted: the store had lost them.',
        q('renewed', `sum(${rate('lease_renewals_total')})`),
        q('lost', `sum(${rate('leases_lost_total')})`),
        q('reasserted', `sum(${rate('leases_reasserted_total')})`),
      ),
      graph(
        'Passes that failed',
        'ops',
        'By replica. The log tells the loop and why.',
        q('{{instance}}', `sum by (instance) (${rate('loop_failures_total')})`),
      ),
      graph(
        'Last success',
        's',
        'How long ago the loop that is furthest behind succeeded.',
        q('{{instance}}', `max by (instance) (${age()})`),
      ),
      graph(
        'Event-loop delay',
        's',
        '99 of 100 are less.',
        q('{{instance}}', `${m('nodejs_eventloop_lag_p99_seconds')} ${OURS}`),
      ),
      graph('CPU', 'short', 'Cores in use.', q('{{instance}}', `${rate('process_cpu_seconds_total')} ${OURS}`)),
      graph('Memory', 'bytes', 'Resident.', q('{{instance}}', `${m('process_resident_memory_bytes')} ${OURS}`)),
    ],
  },
];
