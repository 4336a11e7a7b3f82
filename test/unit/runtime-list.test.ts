import { expect, test } from 'vitest';
import type { AddressRules } from '../../src/runtime/addresses.ts';
import { type ListEntry, readEntry } from '../../src/runtime/container-list.ts';

const ID = 'abc123abc123'.padEnd(64, '0');
const NAME = `/sandbox-${'a'.repeat(32)}`;
const PUBLISHED: AddressRules = {
  address: 'published',
  network: null,
  advertiseHost: '127.0.0.1',
  bindHost: '127.0.0.1',
  probeHost: null,
};
const tcp = (IP: string, PublicPort: number, PrivatePort = 8080) => ({ IP, PublicPort, PrivatePort, Type: 'tcp' });

const read = (changes: Partial<ListEntry>, rules: Partial<AddressRules> = {}, port: number | null = 8080) =>
  readEntry(
    {
      Id: ID,
      Names: [NAME],
      Created: 1_700_000_000,
      State: 'running',
      Labels: { 'sandbox-broker.deployment': 'd', 'sandbox-broker.profile': 'p' },
      Ports: [tcp('127.0.0.1', 40_000)],
      ...changes,
    },
    { deployment: 'd', namePrefix: 'sandbox', rules: { ...PUBLISHED, ...rules }, portOf: () => port },
  );
const urlOf = (...args: Parameters<typeof read>) => read(...args)?.container.url;

test('[R-03] a container without a published port has no url; an unreadable time is an unknown age', () => {
  expect(urlOf({ Ports: [] })).toBeNull();
  expect(urlOf({ Ports: null })).toBeNull();
  expect(urlOf({ Ports: [{ PrivatePort: 8080, Type: 'tcp' }] })).toBeNull();
  for (const Created of [null, Number.NaN, -62135596800, Number.POSITIVE_INFINITY, 'soon' as never]) {
    expect(read({ Created })?.container.createdAt).toBeNull();
  }
  expect(read({})?.container.createdAt).toBe(1_700_000_000_000);
});

test('[R-03] an entry with nothing but an id and our label is listed', () => {
  const seen = read({ Names: null, Created: null, State: null, Ports: null });
  expect(seen?.container).toMatchObject({
    id: ID,
    name: '',
    role: { kind: 'foreign' },
    state: 'restarting',
    url: null,
  });
});

test('[R-02] an entry without labels, or with another deployment in them, is none of ours', () => {
  expect(read({ Labels: null })).toBeNull();
  expect(read({ Labels: {} })).toBeNull();
  expect(read({ Labels: { 'sandbox-broker.deployment': 'D' } })).toBeNull();
});

test('[R-22] a labelled container under a strange name is listed as foreign; an alias is not its name', () => {
  expect(read({ Names: ['/mine'] })?.container.role).toEqual({ kind: 'foreign' });
  expect(read({ Names: [`/other${NAME}`, NAME] })?.container).toMatchObject({
    name: NAME.slice(1),
    role: { kind: 'sandbox' },
  });
});

test('[R-07] the url names one address family and its port', () => {
  const Ports = [tcp('::', 50_006), tcp('0.0.0.0', 50_004)];
  expect(urlOf({ Ports }, { advertiseHost: '10.0.0.5', bindHost: '0.0.0.0' })).toBe('http://10.0.0.5:50004');
  expect(urlOf({ Ports }, { advertiseHost: 'host.example', bindHost: '10.0.0.5' })).toBe('http://host.example:50004');
  expect(urlOf({ Ports }, { advertiseHost: 'fd00::5', bindHost: '::' })).toBe('http://[fd00::5]:50006');
});

test('[R-07] the broker may reach a published port by another host than callers do', () => {
  const seen = read({}, { advertiseHost: 'sandboxes.example', probeHost: '172.17.0.1' });
  expect(seen).toMatchObject({
    container: { url: 'http://sandboxes.example:40000' },
    probeUrl: 'http://172.17.0.1:40000',
  });
});

test('[R-07] the port that is published counts when the profile changed or is unknown, unless there are several', () => {
  const Ports = [tcp('127.0.0.1', 40_001, 9090), { PrivatePort: 22, Type: 'tcp' }];
  expect(urlOf({ Ports }, {}, 8080)).toBe('http://127.0.0.1:40001');
  expect(urlOf({ Ports }, {}, null)).toBe('http://127.0.0.1:40001');
  const several = [...Ports, tcp('127.0.0.1', 40_002, 9091)];
  expect(urlOf({ Ports: several }, {}, null)).toBeNull();
  expect(urlOf({ Ports: several }, {}, 9091)).toBe('http://127.0.0.1:40002');
});

test('[R-20] on a network the url names the container, of that network and no other', () => {
  const Networks = { other: { IPAddress: '10.1.0.2' }, mine: { IPAddress: '10.2.0.3', NetworkID: 'n1' } };
  const entry = { Ports: [{ PrivatePort: 8080, Type: 'tcp' }], NetworkSettings: { Networks } };
  expect(urlOf(entry, { address: 'network', network: 'mine' })).toBe('http://10.2.0.3:8080');
  expect(urlOf(entry, { address: 'network', network: 'n1' })).toBe('http://10.2.0.3:8080');
  expect(urlOf(entry, { address: 'network', network: 'gone' })).toBeNull();
});

test('[R-20] on a network without a way out, for which the engine lists no ports, the port is the one of its profile', () => {
  const entry = { Ports: [], NetworkSettings: { Networks: { mine: { IPAddress: '10.2.0.3' } } } };
  expect(urlOf(entry, { address: 'network', network: 'mine' })).toBe('http://10.2.0.3:8080');
  expect(urlOf(entry, { address: 'network', network: 'mine' }, null)).toBeNull();
  expect(urlOf(entry)).toBeNull();
});

test('[R-05] only a running container has a url', () => {
  for (const State of ['created', 'paused', 'restarting', 'removing', 'exited', 'dead', 'stopping']) {
    expect(urlOf({ State })).toBeNull();
  }
});
