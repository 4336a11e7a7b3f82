import Docker from 'dockerode';

/**
 * Looks at and empties the engine of DOCKER_HOST, for the scripts around tests and demo.
 *
 *   engine.ts inventory          one line for each container, network and volume: kind, id, name
 *   engine.ts purge DEPLOYMENT   removes what a deployment left: containers, networks, volumes with its label
 *   engine.ts clear              removes every container and network; only for an engine of one's own
 */
const DEPLOYMENT = 'sandbox-broker.deployment';
const BUILT_IN_NETWORKS = new Set(['bridge', 'host', 'none']);

const docker = new Docker({ timeout: 30_000 });

interface Item {
  readonly kind: 'container' | 'network' | 'volume';
  readonly id: string;
  readonly name: string;
  readonly remove: () => Promise<unknown>;
}

/** Containers first: networks and volumes go only when nothing uses them. */
async function items(label?: string): Promise<readonly Item[]> {
  const filters = label === undefined ? {} : { label: [label] };
  const [containers, networks, volumes] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  return [
    ...containers.map(
      ({ Id: id, Names: names }): Item => ({
        kind: 'container',
        id,
        name: (names[0] ?? '').slice(1),
        remove: () => docker.getContainer(id).remove({ force: true, v: true }),
      }),
    ),
    ...networks
      .filter(({ Name: name }) => !BUILT_IN_NETWORKS.has(name))
      .map(
        ({ Id: id, Name: name }): Item => ({
          kind: 'network',
          id,
          name,
          remove: () => docker.getNetwork(id).remove(),
        }),
      ),
    ...(volumes.Volumes ?? []).map(
      ({ Name: name }): Item => ({
        kind: 'volume',
        id: name,
        name,
        remove: () => docker.getVolume(name).remove(),
      }),
    ),
  ];
}

/** Removes them one by one; what cannot be removed is said and does not keep the others. */
async function remove(all: readonly Item[]): Promise<void> {
  for (const item of all) {
    try {
      await item.remove();
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode === 404) continue;
      process.stderr.write(`cannot remove ${item.kind} ${item.name}: ${(error as Error).message}\n`);
      process.exitCode = 1;
    }
  }
}

const [command, deployment = ''] = process.argv.slice(2);
// An engine that dies in the middle of a reply leaves a call unsettled for ever.
setTimeout(() => process.exit(1), 120_000).unref();
try {
  if (command === 'inventory') {
    for (const { kind, id, name } of await items()) process.stdout.write(`${kind} ${id} ${name}\n`);
  } else if (command === 'purge' && deployment !== '') {
    await remove(await items(`${DEPLOYMENT}=${deployment}`));
  } else if (command === 'clear') {
    await remove((await items()).filter(({ kind }) => kind !== 'volume'));
  } else {
    throw new Error('usage: engine.ts inventory | purge DEPLOYMENT | clear');
  }
} catch (error) {
  process.stderr.write(`engine: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
