import { expect, test } from 'vitest';
import { BrokerClient, person } from '../support/broker-client.ts';
import { useBrokers } from '../support/broker-process.ts';

const { readyBroker } = useBrokers();
const KEY = 'KEY-of-the-gateway';

test('[H-05] [R-15] each acquire, release, destroy and refusal is one audit line with the key’s name, never the key (real)', async () => {
  const auth = { keys: [{ name: 'gateway', key: KEY }] };
  await using broker = await readyBroker({ overrides: { auth, capacity: { max: 1 } } });
  await using api = new BrokerClient(broker.api.url, KEY);
  await using guesser = new BrokerClient(broker.api.url, 'KEY-guessed');
  const asked: { id: string; action: string; outcome: string; key: string | null; sandbox: string | null }[] = [];
  const note = (
    { headers }: { headers: Record<string, unknown> },
    action: string,
    outcome: string,
    sandbox: string | null,
    key: string | null = 'gateway',
  ) => void asked.push({ id: String(headers['x-request-id']), action, outcome, key, sandbox });

  const first = await api.acquire(person('a'));
  const { id, holdId } = first.body;
  note(first, 'acquire', 'created', id);
  note(await api.acquire(person('b')), 'acquire', 'capacity_exhausted', null);
  note(await api.acquire(person('a'), { profile: 'nothing' }), 'acquire', 'unknown_profile', null);
  const again = await api.acquire(person('a'));
  note(again, 'acquire', 'reused', id);
  expect((await api.keepalive(id, holdId)).status).toBe(200);
  note(await api.keepalive(id, '1'), 'keepalive', 'hold_lost', id);
  note(await api.release({ id, holdId }), 'release', 'released', id);
  note(await guesser.destroy(id), 'destroy', 'unauthorized', null, null);
  note(await guesser.status(), 'status', 'unauthorized', null, null);
  note(await api.destroy(id), 'destroy', 'gone', id);
  note(await api.release({ id, holdId }), 'release', 'sandbox_not_found', id);
  const last = asked.at(-1)?.id;
  await broker.logged(({ event, requestId }) => event === 'audit' && requestId === last);
  const lines = broker.events('audit').map(({ requestId, action, outcome, key, sandbox }) => ({
    ...{ id: requestId, action, outcome, key, sandbox },
  }));
  expect(lines).toEqual(asked);
  broker.signal('SIGTERM');
  const { stdout, stderr } = await broker.ended();
  expect(stdout + stderr).not.toMatch(/KEY-/);
});
