import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';
import { dockerConnection, eventually } from '../support/docker.ts';
import { EXAMPLES, NAME, Rendered, type Tree } from './helm-chart.ts';

/** The real engine behind TLS with the chart's certificates: what the bundled engine's options make of it. */

const { readyBroker, startBroker } = useBrokers();
const folder = mkdtempSync(join(tmpdir(), 'helm-'));
let given: Rendered;
let door: Server;

beforeAll(async () => {
  given = await Rendered.of(EXAMPLES.bundled);
  const data = given.secretData(`${NAME}-engine-tls`)!;
  for (const [file, text] of Object.entries(data)) writeFileSync(join(folder, file), text);
  const mine = { ca: data['ca.pem'], cert: data['server-cert.pem'], key: data['server-key.pem'] };
  door = createServer({ ...mine, requestCert: true, rejectUnauthorized: true }, (socket) => {
    const at = dockerConnection();
    const engine = 'socketPath' in at ? connect(at.socketPath) : connect(at.port, at.host);
    socket.pipe(engine).pipe(socket);
    for (const [end, other] of [
      [socket, engine],
      [engine, socket],
    ] as const) {
      end.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  });
  await new Promise<void>((done) => door.listen(0, '127.0.0.1', done));
});

afterAll(async () => {
  await new Promise((done) => door.close(done));
  rmSync(folder, { recursive: true, force: true });
});

/** The engine as the chart writes it, but for the machine on which it and its files are. */
function engine(changes: Tree = {}): Tree {
  const { host, tls } = parse(given.configText.replaceAll('/etc/engine-tls', folder)).runtime.docker;
  expect(host).toBe(given.config.runtime.docker.advertiseHost);
  const docker = { host: '127.0.0.1', port: (door.address() as AddressInfo).port, tls: { ...tls, ...changes } };
  return { overrides: { runtime: { docker } }, env: { DOCKER_HOST: undefined } };
}

test('a broker reaches the engine by the chart’s certificates, and hands sandboxes out', async () => {
  await using broker = await readyBroker(engine());
  const { status, body } = await broker.api.acquire(person('ada'));
  expect(status).toBe(201);
  expect((await fetch(`${body.url}/v1/sandbox`)).status).toBe(200);
  expect((await broker.api.destroy(body.id)).status).toBe(204);
});

test('with a certificate of another authority it does not', async () => {
  const other = (await Rendered.of(EXAMPLES.bundled)).secretData(`${NAME}-engine-tls`)!;
  const changes = { cert: other['cert.pem'], key: other['key.pem'] };
  const refused = once(door, 'tlsClientError');
  await using broker = await startBroker(engine(changes));
  await refused;
  const told = await eventually(async () => (await broker.api.readyz()).body.dependencies?.engine.message ?? null);
  expect(told).toMatch(/certificate|tls|ssl|socket|ECONNRESET/i);
  expect((await broker.api.readyz()).status).toBe(503);
});
