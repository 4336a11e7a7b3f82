import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController, type RawServerDefault } from 'fastify';
import { BrokerError } from '../domain/errors.ts';
import type { Emit } from '../domain/events.ts';
import type { NewId } from '../domain/timing.ts';
import type { SandboxService } from '../service/api.ts';
import { type AuthOptions, KeyRing } from './auth.ts';
import { endConnectionsOnClose, ignoreExpectations, requestTimes } from './connections.ts';
import { collectDocument, docsRoutes } from './docs.ts';
import { Failures } from './failures.ts';
import { healthRoutes } from './health.ts';
import { historyRoutes } from './history.ts';
import { type Metrics, metricsRoutes } from './metrics.ts';
import { givenRequestId, observe } from './request-log.ts';
import { sandboxRoutes } from './sandboxes.ts';
import { MAX_WAIT_MS } from './schemas.ts';
import { statusRoutes } from './status.ts';
import { installBodyParser, installValidation } from './validation.ts';

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface AppOptions {
  readonly service: SandboxService;
  readonly auth: AuthOptions;
  /** Gets one line a request, and each unexpected error once. A pino logger fits. */
  readonly logger: FastifyBaseLogger;
  /** Gets an audit event for every acquire, release and destroy, every refused keepalive, and every refused key. */
  readonly emit: Emit;
  readonly metrics: Metrics;
  readonly version: string;
  readonly newId: NewId;
  /** True from the first signal on: new calls are sent away, connections are not kept. */
  readonly draining: () => boolean;
  /** How long a client may take to send one request, in milliseconds; 30 seconds unless said. */
  readonly requestTimeoutMs?: number;
}

const BODY_LIMIT_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than any answer takes: a connection that is silent for so long belongs to a client that does not read its answer. */
const SILENCE_MS = MAX_WAIT_MS + 60_000;

/** The HTTP face of the broker: builds it and never listens. `close()` waits for the requests in flight. */
export function buildApp(options: AppOptions): App {
  const { service, emit, metrics, version, newId, draining } = options;
  const failures = new Failures({ emit, newId });
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const app: App = fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: (logger) => logger,
    genReqId: (raw) => givenRequestId(raw.headers['x-request-id']) ?? newId(),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout,
    connectionTimeout: SILENCE_MS,
    http: requestTimes(requestTimeout),
    return503OnClosing: false,
    frameworkErrors: failures.refusedByRouter,
    clientErrorHandler: failures.malformed,
  }).withTypeProvider<TypeBoxTypeProvider>();

  app.decorateRequest('keyName', null);
  app.decorateRequest('sandbox', null);
  app.decorateRequest('refusal', null);
  app.decorateRequest('gone', null);
  endConnectionsOnClose(app);
  ignoreExpectations(app);
  installValidation(app);
  installBodyParser(app);
  collectDocument(app, version);
  app.setErrorHandler(failures.answer);
  app.setNotFoundHandler(failures.notFound);

  app.addHook('onRequest', (request, reply, done) => {
    observe(request, reply, emit);
    done();
  });
  // What is no route has no body either: nothing about it is worth a refusal of its own.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.is404) failures.notFound(request);
    done(null, payload);
  });
  // An answer written while draining would keep its connection, and with it the server, for as long as a client likes.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (draining()) reply.header('connection', 'close');
    done(null, payload);
  });

  app.register(async (root: App) => {
    await docsRoutes(root);
    healthRoutes(root, { service, draining });
    metricsRoutes(root, metrics);
    await root.register((v1: App) => guarded(v1, options), { prefix: '/v1' });
  });
  return app;

  async function guarded(v1: App, { auth }: AppOptions): Promise<void> {
    const keys = new KeyRing(auth);
    v1.addHook('onRequest', (request, _reply, done) => {
      request.keyName = keys.identify(request.headers);
      if (draining()) throw new BrokerError('shutting_down', 'This replica is shutting down; another one will answer.');
      done();
    });
    v1.setNotFoundHandler(failures.notFound);
    sandboxRoutes(v1, { service, emit });
    historyRoutes(v1, service);
    statusRoutes(v1, service);
  }
}
