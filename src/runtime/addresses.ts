import { isIPv6 } from 'node:net';

/** How a container's address is made of what the engine lists. */
export interface AddressRules {
  /** `published`: a port of the host. `network`: the container itself, on the network named. */
  readonly address: 'published' | 'network';
  readonly network: string | null;
  /** The host in the urls that callers get. */
  readonly advertiseHost: string;
  /** The host's address on which ports are published. */
  readonly bindHost: string;
  /** By which the broker reaches a published port; null: by `advertiseHost`. */
  readonly probeHost: string | null;
}

/** Where a container answers: the url for callers, and the one by which the broker itself looks. */
export interface Address {
  readonly url: string;
  readonly probeUrl: string;
}

export interface ListedPort {
  readonly IP?: string;
  readonly PrivatePort?: number;
  readonly PublicPort?: number;
  readonly Type?: string;
}

export interface ListedNetwork {
  readonly NetworkID?: string;
  readonly IPAddress?: string;
  readonly GlobalIPv6Address?: string;
}

/**
 * The address of a container that lists these ports and networks; null while it has none. `port` is the one that its
 * profile listens on; where that is not known, or is not there because the profile changed since, the only one counts.
 */
export function addressOf(
  ports: readonly ListedPort[],
  networks: Readonly<Record<string, ListedNetwork>>,
  port: number | null,
  rules: AddressRules,
): Address | null {
  if (rules.address === 'network') {
    // On a network without a way out (`internal`) the engine lists no ports at all.
    const inside = ports.length === 0 ? port : privatePort(ports, port);
    const host = networkHost(networks, rules.network);
    if (inside === null || host === null) return null;
    return { url: httpUrl(host, inside), probeUrl: httpUrl(host, inside) };
  }
  const inside = privatePort(ports, port);
  if (inside === null) return null;
  const outside = publishedPort(ports, inside, rules);
  if (outside === null) return null;
  return {
    url: httpUrl(rules.advertiseHost, outside),
    probeUrl: httpUrl(rules.probeHost ?? rules.advertiseHost, outside),
  };
}

function privatePort(ports: readonly ListedPort[], wanted: number | null): number | null {
  const tcp = ports.filter(({ Type }) => Type === undefined || Type === 'tcp');
  const inside = new Set(tcp.map(({ PrivatePort }) => PrivatePort).filter(isPort));
  if (wanted !== null && inside.has(wanted)) return wanted;
  const published = new Set(tcp.filter(({ PublicPort }) => isPort(PublicPort)).map(({ PrivatePort }) => PrivatePort));
  const [only, another] = [...(published.size > 0 ? published : inside)].filter(isPort);
  return another === undefined ? (only ?? null) : null;
}

/** Both families may be listed, each with a port of its own: one entry is chosen, the one that the url's host means. */
function publishedPort(ports: readonly ListedPort[], inside: number, rules: AddressRules): number | null {
  const entries = ports.filter((entry) => entry.PrivatePort === inside && isPort(entry.PublicPort));
  const wantsIPv6 = isIPv6(rules.bindHost) || isIPv6(rules.advertiseHost);
  const chosen =
    entries.find(({ IP }) => IP === rules.bindHost) ??
    entries.find(({ IP }) => isIPv6(IP ?? '') === wantsIPv6) ??
    entries[0];
  return chosen?.PublicPort ?? null;
}

function networkHost(networks: Readonly<Record<string, ListedNetwork>>, network: string | null): string | null {
  for (const [name, entry] of Object.entries(networks)) {
    if (network !== null && name !== network && entry.NetworkID !== network) continue;
    const host = entry.IPAddress || entry.GlobalIPv6Address;
    if (host) return host;
  }
  return null;
}

function httpUrl(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

function isPort(value: number | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}
