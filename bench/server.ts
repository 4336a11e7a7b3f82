/**
 * The measured process: a broker as `npm start` makes one, and beside it, in the same process and with the same HTTP
 * stack, the floor: an acquire that does one script call on the same Redis and answers the same JSON.
 * Argument: the configuration. Tells its parent the ports; ends with it.
 */
import { hostname } from 'node:os';
import { Broker } from '../src/broker.ts';
import { parseConfig } from '../src/config/load-config.ts';
import { asOwnerId, asSandboxId } from '../src/domain/ids.ts';
import { buildApp } from '../src/http/app.ts';
import { openStore } from '../src/leases/open-store.ts';
import { systemClock } from '../src/observability/clock.ts';
import { createLogger, logOutput } from '../src/observability/logger.ts';
import type { AcquireOutcome, SandboxService } from '../src/service/api.ts';

export interface Ports {
  readonly broker: number;
  readonly floor: number;
}

const config = parseConfig(process.argv[2] ?? '', process.env);
const logger = createLogger('info', {}, logOutput('/dev/null'));
const newId = (): string => crypto.randomUUID();
const common = { clock: systemClock, newId };
const owner = `${hostname()}:${newId()}`;

const broker = new Broker({ config, owner, version: '0.0.0', logger, random: Math.random, ...common });
const { port } = await broker.start();

const { deployment, store, lease, holds } = config;
const policy = { leaseMs: lease.durationMs, holdTtlMs: holds.ttlMs, maxSandboxes: 0, maxPerUser: 0 };
const floorStore = (
  await openStore({
    config: { ...store, deployment, policy },
    owner: asOwnerId(`${owner}-floor`),
    emit: () => undefined,
    ...common,
  })
).store;

let answer: AcquireOutcome | null = null;
const id = asSandboxId('0'.repeat(32));
const service = {
  acquire: async (): Promise<AcquireOutcome> => {
    await floorStore.read(id);
    if (answer === null) throw new Error('the floor has nothing to answer yet');
    return answer;
  },
} as unknown as SandboxService;
const metrics = { render: async () => ({ contentType: 'text/plain', body: '' }) };
const floor = buildApp({
  service,
  auth: config.auth,
  logger,
  emit: () => undefined,
  metrics,
  version: '0.0.0',
  newId,
  draining: () => false,
});
await floor.listen({ host: '127.0.0.1', port: 0 });
const address = floor.server.address();
if (address === null || typeof address === 'string') throw new Error('the floor has no port');

process.on('message', (told: { readonly answer?: AcquireOutcome; readonly stop?: true }) => {
  if (told.answer !== undefined) answer = told.answer;
  if (told.stop === true) void stop();
  process.send?.({ done: true });
});
process.once('disconnect', () => void stop());
const ports: Ports = { broker: port, floor: address.port };
process.send?.(ports);

async function stop(): Promise<void> {
  await floor.close();
  await floorStore.close();
  await broker.stop();
  process.exit(0);
}
