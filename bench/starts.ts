import Docker from 'dockerode';
import { parseConfig } from '../src/config/load-config.ts';
import type { Profile } from '../src/domain/profile.ts';
import { containerSpec } from '../src/runtime/container-spec.ts';
import { MeasuredServer } from './process.ts';
import { markdown, median, type Row, say, spread } from './report.ts';
import { brokerYaml, newDeployment } from './settings.ts';

const TRIES = 16;
const PROBE_MS = 5;
const BURST = 24;
const PARALLEL = [1, 2, 3, 4, 6, 8, 12, 24];

/** What a client without a broker does: the same container created, started, and asked until it answers. */
class BareClient {
  readonly #docker = new Docker();
  readonly #deployment: string;
  readonly #profile: Profile;

  constructor(deployment: string) {
    this.#deployment = deployment;
    const profile = parseConfig(brokerYaml({ deployment }), {}).profiles.get('default');
    if (profile === undefined) throw new Error('there is no default profile');
    this.#profile = profile;
  }

  async start(name: string): Promise<{ readonly ms: number; readonly remove: () => Promise<void> }> {
    const profile = this.#profile;
    const labels = { 'sandbox-broker.bench': this.#deployment };
    const network = await this.#network();
    const { body } = containerSpec({ name, labels, profile, network, bindHost: '127.0.0.1' });
    const began = performance.now();
    const container = await this.#docker.createContainer({ name, ...body });
    await container.start();
    const { NetworkSettings } = await container.inspect();
    const port = NetworkSettings.Ports[`${profile.port}/tcp`]?.[0]?.HostPort;
    for (;;) {
      const reply = await fetch(`http://127.0.0.1:${port}${profile.readiness.path}`).catch(() => null);
      await reply?.arrayBuffer();
      if (reply?.status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
    }
    return { ms: performance.now() - began, remove: () => container.remove({ force: true, v: true }) };
  }

  /** The one that the broker made for its sandboxes. */
  async #network(): Promise<string> {
    const filters = { label: [`sandbox-broker.deployment=${this.#deployment}`] };
    const [network] = await this.#docker.listNetworks({ filters });
    if (network === undefined) throw new Error('the broker has made no network');
    return network.Name;
  }
}

/** Cold acquires, bare starts and acquires served by a spare, taking turns, one at a time. */
export async function starts(): Promise<readonly Row[]> {
  const deployment = newDeployment();
  const cold: number[] = [];
  const bare: number[] = [];
  const spared: number[] = [];
  {
    await using server = await MeasuredServer.start({ deployment });
    const client = new BareClient(deployment);
    for (let n = 0; n < TRIES; n += 1) {
      const began = performance.now();
      const { id, origin } = await server.acquire(`cold ${n}`);
      if (origin !== 'created') throw new Error(`a cold acquire was answered with one that was ${origin}`);
      cold.push(performance.now() - began);
      await server.destroy(id);
      const { ms, remove } = await client.start(`${deployment}-bare-${n}`);
      bare.push(ms);
      await remove();
    }
    say(`cold starts: ${TRIES} of each`);
  }
  {
    await using server = await MeasuredServer.start({ deployment, spares: 1 });
    for (let n = 0; n < TRIES; n += 1) {
      await untilSpare(server);
      const began = performance.now();
      const { id, origin } = await server.acquire(`spare ${n}`);
      spared.push(performance.now() - began);
      if (origin !== 'spare')
        throw new Error(`an acquire with a spare at hand was answered with one that was ${origin}`);
      await server.destroy(id);
    }
    say(`spares: ${TRIES} handed out`);
  }
  return [
    {
      what: 'cold acquire, median',
      measured: `${spread(cold)} ms`,
      against: `bare client ${spread(bare)} ms`,
      value: median(cold) / median(bare),
      goal: { at: 'most', value: 1.1 },
      unit: 'x',
    },
    {
      what: 'acquire served by a spare, median',
      measured: `${spread(spared)} ms`,
      against: `cold acquire ${spread(cold)} ms`,
      value: median(spared) / median(cold),
      goal: { at: 'most', value: 0.1 },
      unit: 'x',
    },
  ];
}

async function untilSpare(server: MeasuredServer): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    const { body } = await server.call<{ spares: Record<string, { ready: number }> }>('GET', '/v1/status');
    if ((body.spares.default?.ready ?? 0) > 0) return;
    if (performance.now() > until) throw new Error('the pool stays empty');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A burst of cold acquires at each width, for the choice of `acquire.parallelStarts`. */
export async function parallelStarts(): Promise<string> {
  const lines: string[][] = [];
  for (const width of PARALLEL) {
    const deployment = newDeployment();
    await using server = await MeasuredServer.start({ deployment, parallelStarts: width }, BURST);
    const began = performance.now();
    const times = await Promise.all(
      Array.from({ length: BURST }, async (_, n) => {
        const { id } = await server.acquire(`burst ${n}`);
        return { id, ms: performance.now() - began };
      }),
    );
    const all = times.map(({ ms }) => ms);
    lines.push([String(width), Math.max(...all).toFixed(0), median(all).toFixed(0), Math.min(...all).toFixed(0)]);
    say(`burst of ${BURST}, ${width} at a time: ${Math.max(...all).toFixed(0)} ms`);
    await Promise.all(times.map(({ id }) => server.destroy(id)));
  }
  return markdown(['parallelStarts', `all ${BURST} ready, ms`, 'median, ms', 'first, ms'], lines);
}
