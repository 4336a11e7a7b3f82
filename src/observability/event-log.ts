import type { BrokerEvent, Emit } from '../domain/events.ts';
import type { Logger } from './logger.ts';

type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** How loud each event is, and how it reads. The event's own fields stand beside the message. */
const LINES: { readonly [T in BrokerEvent['type']]: readonly [Level, string] } = {
  acquired: ['debug', 'sandbox handed out'],
  'acquire-failed': ['warn', 'acquire failed'],
  'acquire-waits': ['debug', 'another replica is starting the sandbox; waiting for it'],
  started: ['info', 'container started and ready'],
  'start-failed': ['warn', 'start failed; what it made is removed'],
  released: ['debug', 'hold released'],
  claimed: ['info', 'removal claimed'],
  removed: ['info', 'container removed'],
  'removal-stopped': ['info', 'removal given up: somebody has the sandbox or finishes it'],
  'removal-failed': ['error', 'container could not be removed; it is tried again'],
  adopted: ['info', 'sandbox adopted'],
  ended: ['warn', 'sandbox ended by itself'],
  'lease-lost': ['info', 'another replica owns the sandbox'],
  'lease-reasserted': ['warn', 'the store had lost the record; it was written again'],
  'record-unreadable': ['error', 'the record cannot be read; DELETE the sandbox to clear it'],
  'history-dropped': [
    'warn',
    'the store was away for too long: the oldest lines of the sandboxes’ histories are given up',
  ],
  'spare-added': ['info', 'spare started and ready'],
  'spare-failed': ['warn', 'spare could not be started; it is tried again after a pause'],
  'foreign-name': ['warn', 'a container with our labels has a name that is none of ours; it is left alone'],
  'renewal-pass': ['debug', 'leases renewed'],
  'reconcile-pass': ['debug', 'reconciled'],
  'loop-pass': ['silent', ''],
  'loop-failed': ['error', 'a background pass failed; the next one tries again'],
  'loop-recovered': ['info', 'a background pass that had failed succeeded'],
  'image-pull': ['info', 'pulling image'],
  'capacity-exceeds-engine': [
    'warn',
    'the engine has less memory than capacity.max sandboxes of this profile may take; set capacity.max or resources.memory lower',
  ],
  'engine-mismatch': ['error', 'this is another container engine than the deployment runs on'],
  'leases-not-shared': [
    'error',
    'brokers that share a lease store run this deployment on this engine, and this one keeps its leases in memory; it does nothing',
  ],
  readiness: ['info', 'readiness changed'],
  audit: ['info', 'audit'],
  'store-evicts': ['warn', 'Redis may evict leases when it is full; set its maxmemory-policy to noeviction'],
  request: ['silent', ''],
};

/** Writes every event as one log line. */
export function logEvents(logger: Logger): Emit {
  return (event) => {
    const [usual, message] = LINES[event.type];
    if (usual === 'silent') return;
    const level = event.type === 'loop-failed' && event.again ? 'debug' : usual;
    if (!logger.isLevelEnabled(level)) return;
    const { type, ...fields } = event;
    if ('message' in fields) {
      const { message: detail, ...rest } = fields;
      logger[level]({ event: type, ...rest, detail }, message);
    } else logger[level]({ event: type, ...fields }, message);
  };
}
