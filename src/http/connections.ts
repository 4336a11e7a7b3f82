import type { IncomingMessage, ServerOptions } from 'node:http';
import type { App } from './app.ts';

/** How often, within the time for one request, it is looked whether that time is over. */
const LOOKS = 6;

/**
 * For a server that gives one request `timeoutMs` to arrive. Where the headers' own time is the longer one, as it is by
 * default, Node exchanges the two; and it looks every 30 seconds only.
 */
export function requestTimes(timeoutMs: number): ServerOptions {
  return { headersTimeout: timeoutMs, connectionsCheckingInterval: Math.ceil(timeoutMs / LOOKS) };
}

/** An `Expect` that is not `100-continue` asks for nothing that is known; by itself Node refuses it without a body. */
export function ignoreExpectations({ server }: App): void {
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/**
 * Lets `close()` end when the last request is answered. Connections that are open without a request, also those on
 * which nothing was ever sent or whose request has not arrived as a whole, would otherwise hold it up for as long as
 * their clients like.
 */
export function endConnectionsOnClose(app: App): void {
  const inFlight = new Set<IncomingMessage>();
  let closing = false;
  const endIfIdle = (): void => {
    if (closing && ![...inFlight].some(({ complete }) => complete)) app.server.closeAllConnections();
  };
  app.addHook('onRequest', ({ raw }, reply, done) => {
    inFlight.add(raw);
    reply.raw.once('close', () => {
      inFlight.delete(raw);
      if (closing) setImmediate(endIfIdle);
    });
    done();
  });
  app.addHook('preClose', (done) => {
    closing = true;
    setImmediate(endIfIdle);
    done();
  });
}
