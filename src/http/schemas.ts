import { type Static, type TSchema, Type } from 'typebox';
import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import type { Origin } from '../domain/events.ts';
import { HISTORY_EVENTS } from '../domain/history.ts';
import type { ShownState } from '../domain/sandbox.ts';

/** Neither control characters (U+0000–U+001F, U+007F–U+009F) nor halves of surrogate pairs. */
export const TEXT_PATTERN = '^[^\\p{Cc}\\p{Cs}]*$';
export const SANDBOX_ID_PATTERN = '^[0-9a-f]{32}$';
export const HOLD_ID_PATTERN = '^[1-9][0-9]{0,15}$';
/** Longest wait that a caller may ask for: ten minutes. */
export const MAX_WAIT_MS = 600_000;

const SHOWN_STATES = ['starting', 'active', 'warm', 'destroying'] as const satisfies readonly ShownState[];
const ORIGINS = ['created', 'spare', 'discovered', 'reclaimed', 'reused'] as const satisfies readonly Origin[];

const text = (maxLength: number, description: string, examples: string[]) =>
  Type.String({ minLength: 1, maxLength, pattern: TEXT_PATTERN, description, examples });
const oneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: values, description });
/** Types as a list, not a union: the serializer then needs no validator to tell them apart. */
const textOrNull = (description: string, more: object = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description, ...more });
const time = (description: string) => Type.String({ format: 'date-time', description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
/** Nothing but what is listed, in requests as well as in answers. */
const record = <P extends Record<string, TSchema>>(
  $id: string,
  description: string,
  properties: P,
  more: object = {},
) => Type.Object(properties, { $id, description, additionalProperties: false, ...more });

/** A reference to a shared schema, as the answer to a call; `headers` are for the document. */
export function refer<S extends TSchema>(schema: S, description?: string, headers?: Record<string, object>) {
  const { $id } = schema as { $id?: string };
  return Type.Unsafe<Static<S>>({
    $ref: `${$id}#`,
    ...(description === undefined ? {} : { description }),
    ...(headers === undefined ? {} : { headers }),
  });
}

const OPAQUE = '1 to 256 Unicode characters (code points) without control characters. Opaque: compared exactly.';
const UserId = text(256, `Whose sandbox it is. ${OPAQUE}`, ['user-42']);
const ThreadId = text(256, `Which of the user's conversations. ${OPAQUE}`, ['thread-7']);
const ProfileName = text(128, 'A profile of the configuration.', ['default']);
const HoldId = Type.String({
  pattern: HOLD_ID_PATTERN,
  description: 'The handout, as the acquire told it: decimal digits, to be kept as text.',
  examples: ['1796069125644730'],
});

export const AcquireRequest = record('AcquireRequest', 'Whose sandbox is wanted, and how long to wait for it.', {
  userId: UserId,
  threadId: ThreadId,
  profile: Type.Optional(text(128, 'A profile of the configuration; without it, `default`.', ['default'])),
  waitMs: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_MS,
      description:
        'How long to wait, in milliseconds; 0: do not wait. Without it, `acquire.wait` of the configuration.',
      examples: [30_000],
    }),
  ),
});

export const HoldRequest = record('HoldRequest', 'Which handout is meant.', { holdId: HoldId });

export const SandboxPath = Type.Object(
  {
    id: Type.String({
      pattern: SANDBOX_ID_PATTERN,
      description: 'Id of the sandbox: 32 hex digits. Anything else is refused with 400, since no sandbox can have it.',
      examples: ['9f86d081884c7d659a2feaa0c55ad015'],
    }),
  },
  { additionalProperties: false },
);

export const ListFilter = Type.Object(
  {
    userId: Type.Optional(UserId),
    threadId: Type.Optional(ThreadId),
    state: Type.Optional(oneOf(SHOWN_STATES, 'Only sandboxes in this state.')),
    profile: Type.Optional(ProfileName),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 500, default: 100, description: 'How many at most in one answer.' }),
    ),
    cursor: Type.Optional(text(1024, '`nextCursor` of the answer before.', ['9f86d081884c7d659a2feaa0c55ad015'])),
  },
  { additionalProperties: false },
);

export const Previous = record('Previous', 'How the earlier container of this identity ended by itself.', {
  endedAt: time('When it ended.'),
  reason: Type.String({ description: 'Why, in words.', examples: ['out of memory'] }),
  exitCode: Type.Unsafe<number | null>({ type: ['integer', 'null'], description: 'Null when nobody saw it.' }),
  logTail: Type.String({ description: 'Its last log lines.' }),
});

const sandbox = {
  id: Type.String({ pattern: SANDBOX_ID_PATTERN, description: 'The same for the same identity, always.' }),
  profile: textOrNull('Null when the container was found and does not tell.'),
  userId: textOrNull('Null when the container was found and does not tell.'),
  threadId: textOrNull('Null when the container was found and does not tell.'),
  url: textOrNull('Where it answers; null while it is starting.'),
  state: oneOf(SHOWN_STATES, '`active` while a hold counts, `warm` when ready and unheld.'),
  holds: count('How many handouts count at this moment.'),
  owner: Type.String({ description: 'The replica that renews its lease. Says nothing about who may use it.' }),
  createdAt: time('When its container was started.'),
  lastActiveAt: time('When a caller was last heard of.'),
  warmUntil: textOrNull('When it will be reaped; null unless it is warm and idle reaping is on.', {
    format: 'date-time',
  }),
};

const SANDBOX_EXAMPLE = {
  id: '9f86d081884c7d659a2feaa0c55ad015',
  profile: 'default',
  userId: 'user-42',
  threadId: 'thread-7',
  url: 'http://127.0.0.1:49153',
  state: 'active',
  holds: 1,
  owner: 'broker-1:0b7e2c5e-4a0b-4d6e-9a51-0f6f2f1f3c11',
  createdAt: '2026-03-01T09:00:00.000Z',
  lastActiveAt: '2026-03-01T09:05:12.345Z',
  warmUntil: null,
};

export const Sandbox = record('Sandbox', 'One sandbox as it is now.', sandbox, { examples: [SANDBOX_EXAMPLE] });

export const Acquired = record(
  'AcquiredSandbox',
  'A sandbox handed out to this caller.',
  {
    ...sandbox,
    holdId: HoldId,
    origin: oneOf(
      ORIGINS,
      '`created`: started now; `spare`: from the pool; `discovered`: found running; `reclaimed`: nobody held it; ' +
        '`reused`: others hold it too.',
    ),
    previous: Type.Optional(refer(Previous)),
  },
  { examples: [{ ...SANDBOX_EXAMPLE, holdId: '1796069125644730', origin: 'created' }] },
);

export const SandboxList = record('SandboxList', 'One page of sandboxes.', {
  items: Type.Array(refer(Sandbox)),
  nextCursor: textOrNull('Ask with this for the next page; null on the last one.'),
});

export const SandboxEvent = record(
  'SandboxEvent',
  'One thing that happened to a sandbox.',
  {
    at: time('When, by the clock of the replica that tells it.'),
    event: oneOf(
      HISTORY_EVENTS,
      '`held`, `released`: handed out, given back; `refused`: an acquire failed; `started`, `start-failed`: a container ' +
        'was made; `adopted`, `lost`, `reasserted`: its lease moved; `ended`: its container ended by itself; ' +
        '`destroy-asked`, `claimed`, `removed`, `kept`, `removal-failed`: its removal.',
    ),
    owner: Type.String({ description: 'The replica that did it, or saw it.' }),
    reason: textOrNull('Why, or how: an origin, a reason, a problem code.'),
    key: textOrNull('The name of the API key that asked for it.'),
    container: textOrNull('Which container.'),
  },
  {
    examples: [
      {
        at: '2026-03-01T09:05:12.345Z',
        event: 'ended',
        owner: 'broker-1:0b7e2c5e-4a0b-4d6e-9a51-0f6f2f1f3c11',
        reason: 'out of memory (exit code 137)',
        key: null,
        container: 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2',
      },
    ],
  },
);

export const SandboxEvents = record('SandboxEvents', 'What happened to a sandbox, oldest first.', {
  items: Type.Array(refer(SandboxEvent)),
});

export const SandboxLogs = record(
  'SandboxLogs',
  "The last log lines of a sandbox's container.",
  {
    running: Type.Boolean({ description: 'False for one that ended, or is gone.' }),
    container: textOrNull('Which container; null when it is gone.'),
    reason: textOrNull('How it ended, in words; null while it runs.'),
    exitCode: Type.Unsafe<number | null>({ type: ['integer', 'null'], description: 'Null when nobody saw it.' }),
    endedAt: textOrNull('When it ended.', { format: 'date-time' }),
    logTail: Type.String({ description: 'Its last log lines.' }),
  },
  {
    examples: [
      {
        running: false,
        container: null,
        reason: 'out of memory',
        exitCode: 137,
        endedAt: '2026-03-01T09:05:12.345Z',
        logTail: 'MemoryError',
      },
    ],
  },
);

const Dependency = record('Dependency', 'One dependency as it is now.', {
  ok: Type.Boolean(),
  message: textOrNull('What is wrong; null when nothing is.'),
});

export const Dependencies = record('Dependencies', 'What this replica depends on.', {
  store: refer(Dependency),
  engine: refer(Dependency),
  images: refer(Dependency),
});

export const Readiness = record('Readiness', 'Whether this replica takes requests.', {
  ready: Type.Boolean(),
  because: textOrNull('Why it is not ready; null when it is.'),
  dependencies: Type.Optional(refer(Dependencies, 'Left out while shutting down.')),
});

export const Health = record('Health', 'The process runs.', { status: oneOf(['ok'], 'Always `ok`.') });

const Spares = record('Spares', 'Spare containers of one profile.', {
  ready: count('Kept started and ready.'),
  wanted: count('How many there should be.'),
});

const SandboxCounts = record('SandboxCounts', 'Sandboxes of the fleet by state.', {
  starting: count('Being started.'),
  active: count('Ready, and held.'),
  warm: count('Ready, and unheld.'),
  destroying: count('Being removed.'),
});

const Capacity = record('Capacity', 'Sandboxes of the fleet against their limit.', {
  max: count('`capacity.max` of the configuration.'),
  used: count('Slots in use.'),
  waiting: count('Callers that wait for a slot at this replica.'),
});

export const Status = record('Status', 'This replica, and the fleet as the lease store knows it.', {
  owner: Type.String({ description: 'Id of this replica, new at each start.' }),
  deployment: Type.String(),
  version: Type.String(),
  store: oneOf(['memory', 'redis'], 'The kind of lease store.'),
  ready: Type.Boolean(),
  because: textOrNull('Why this replica is not ready; null when it is.'),
  dependencies: refer(Dependencies),
  sandboxes: refer(SandboxCounts),
  capacity: refer(Capacity),
  spares: Type.Unsafe<Record<string, Static<typeof Spares>>>({
    type: 'object',
    additionalProperties: { $ref: 'Spares#' },
    description: 'By profile.',
  }),
});

export const Problem = record('Problem', 'What went wrong (RFC 9457).', {
  type: Type.String({ description: 'A URI for the code.' }),
  title: Type.String({ description: 'The code in words; the same each time.' }),
  status: Type.Integer({ description: 'The HTTP status.' }),
  detail: Type.String({ description: 'What happened this time, for people.' }),
  code: Type.Unsafe<ErrorCode>({ type: 'string', enum: ERROR_CODES, description: 'What to decide by.' }),
  retryable: Type.Boolean({ description: 'The same request may succeed when sent again after `Retry-After`.' }),
  requestId: Type.String({ description: 'The same as in `X-Request-Id`.' }),
  previous: Type.Optional(refer(Previous)),
});

export type SandboxBody = Static<typeof Sandbox>;
export type AcquiredBody = Static<typeof Acquired>;
export type EventsBody = Static<typeof SandboxEvents>;
export type LogsBody = Static<typeof SandboxLogs>;
export type PreviousBody = Static<typeof Previous>;
export type ReadinessBody = Static<typeof Readiness>;
export type ProblemBody = Static<typeof Problem>;

/** What is known by name, in the document and to validators and serializers. */
export const SHARED_SCHEMAS: readonly TSchema[] = [
  AcquireRequest,
  HoldRequest,
  Previous,
  Sandbox,
  Acquired,
  SandboxList,
  SandboxEvent,
  SandboxEvents,
  SandboxLogs,
  Dependency,
  Dependencies,
  Readiness,
  Health,
  Spares,
  SandboxCounts,
  Capacity,
  Status,
  Problem,
];
