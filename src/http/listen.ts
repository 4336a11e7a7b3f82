import { messageOf } from '../domain/errors.ts';
import type { App } from './app.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Listens, and tells the port that it got. Rejects with an error whose message says what to do. */
export async function listen(app: App, { host, port }: Address): Promise<Address> {
  await app.listen({ host, port }).catch((error: unknown) => {
    throw listenError(error, host, port);
  });
  const address = app.server.address();
  return { host, port: typeof address === 'object' && address !== null ? address.port : port };
}

function listenError(error: unknown, host: string, port: number): Error {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  if (code === 'EADDRINUSE')
    return new Error(`Port ${port} on ${host} is in use by another program. Set server.port, or stop it.`);
  if (code === 'EADDRNOTAVAIL') return new Error(`This machine has no address ${host}. Set server.host.`);
  if (code === 'EACCES')
    return new Error(`Port ${port} may not be used by this user. Set server.port to one above 1023.`);
  return new Error(`Cannot listen on ${host}:${port}: ${messageOf(error)}`);
}
