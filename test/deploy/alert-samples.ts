/** One minute of samples a step, in promtool's notation: `0x5` is six times 0, `0+2x5` counts up by 2. */
export type Series = Readonly<Record<string, string>>;

export interface AlertCase {
  readonly alert: string;
  /** Other series that make it fire then and so, too. */
  readonly alsoFires?: readonly Series[];
  /** What makes it fire at that minute, with which labels and which summary. */
  readonly fires: { readonly series: Series; readonly at: number; readonly labels?: object; readonly summary: string };
  /** A minute at which the same is so, and not yet for long enough; for those that wait. */
  readonly pending?: number;
  /** What comes near and does not; with `every`, of samples that are so many minutes apart. */
  readonly quiet: readonly { readonly series: Series; readonly at: number; readonly every?: number }[];
}

/** A metric of the broker at replica a (or another) of the fleet `broker`. */
export const at = (metric: string, labels = '', replica = 'a'): string =>
  `${metric.startsWith('nodejs_') || metric === 'up' ? '' : 'sandbox_broker_'}${metric}` +
  `{job="broker",instance="${replica}"${labels === '' ? '' : `,${labels}`}}`;

export const fleet = { job: 'broker' };
export const replicaA = { job: 'broker', instance: 'a' };
export const build = at('build_info');
export const [readyA, readyB] = [at('ready'), at('ready', '', 'b')];
export const store = (replica: string): string => at('dependency_up', 'dependency="store"', replica);
export const engine = (replica: string): string => at('dependency_up', 'dependency="engine"', replica);
export const images = (replica: string): string => at('dependency_up', 'dependency="images"', replica);
export const owned = (state: string, replica = 'a'): string => at('sandboxes_owned', `state="${state}"`, replica);
export const acquires = (origin: string, le: string): string =>
  at('acquire_duration_seconds_bucket', `outcome="ready",origin="${origin}",le="${le}"`);
export const answered = at('acquire_duration_seconds_count', 'outcome="ready",origin="reused"');
export const failed = (code: string): string => at('acquire_failures_total', `code="${code}"`);
export const renewedAt = at('loop_last_success_timestamp_seconds', 'loop="renewal"');
export const reconciledAt = at('loop_last_success_timestamp_seconds', 'loop="reconcile"');
export const interval = at('loop_interval_seconds', 'loop="reconcile"');
export const storeCalls = at('store_call_duration_seconds_count', 'call="take"');
export const storeFailures = (code: string): string => at('store_call_failures_total', `call="take",code="${code}"`);
export const historyAt = at('loop_last_success_timestamp_seconds', 'loop="history"');
export const historyInterval = at('loop_interval_seconds', 'loop="history"');
export const lease = at('lease_duration_seconds');
export const follows = (replica = 'a'): string => at('engine_events_followed', '', replica);
export const runs = (version: string, replica: string): string =>
  at('build_info', `version="${version}",deployment="d",store="redis"`, replica);
