import type { App } from './app.ts';

/**
 * Lets `close()` end when the last request is answered. Connections that are open without a request, also those on
 * which nothing was ever sent, would otherwise hold it up for as long as their clients like.
 */
export function endConnectionsOnClose(app: App): void {
  let inFlight = 0;
  let closing = false;
  const endIfIdle = (): void => {
    if (closing && inFlight === 0) app.server.closeAllConnections();
  };
  app.addHook('onRequest', (_request, reply, done) => {
    inFlight += 1;
    reply.raw.once('close', () => {
      inFlight -= 1;
      setImmediate(endIfIdle);
    });
    done();
  });
  app.addHook('preClose', (done) => {
    closing = true;
    setImmediate(endIfIdle);
    done();
  });
}
