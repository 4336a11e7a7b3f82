import { dockerClient, dockerRuntime, eventually, leftovers, newDeployment, sweep } from '../support/docker.ts';
import { tinyProfile } from '../support/profiles.ts';
import { useTinyImage } from '../support/tiny-image.ts';
import { type RuntimeWorld, runtimeContract } from './runtime-contract.ts';

const image = useTinyImage();

runtimeContract('Docker', async (): Promise<RuntimeWorld> => {
  const docker = dockerClient();
  const deployment = newDeployment('contract');
  const another = newDeployment('stranger');
  const namePrefix = deployment;
  const profiles = {
    serving: tinyProfile(image.name, { name: 'serving' }),
    silent: tinyProfile(image.name, { name: 'silent', environment: { MODE: 'silent' } }),
    ending: tinyProfile(image.name, { name: 'ending', environment: { MODE: 'exit' } }),
  };
  const byName = new Map(Object.entries(profiles));
  const replica = (of: string) => dockerRuntime({ deployment: of, namePrefix, profiles: byName });
  const replicas = { runtime: replica(deployment), peer: replica(deployment), stranger: replica(another) };
  const foreign: string[] = [];
  return {
    namePrefix,
    deployment,
    ...replicas,
    profiles,
    imageless: tinyProfile('sandbox-broker-test/nowhere:1', { name: 'imageless' }),
    letEnd: async (container) => {
      await eventually(async () => (await docker.getContainer(container).inspect()).State.Status === 'exited');
    },
    stop: (container) => docker.getContainer(container).stop({ t: 1 }),
    startAgain: (container) => docker.getContainer(container).start(),
    pause: (container) => docker.getContainer(container).pause(),
    vanish: (container) => docker.getContainer(container).remove({ force: true }),
    occupy: async (name) => {
      const container = await docker.createContainer({ name, Image: image.name });
      foreign.push(container.id);
      await container.start();
    },
    stateOf: async (name) => {
      const info = await docker
        .getContainer(name)
        .inspect()
        .catch(() => null);
      return info?.State.Status ?? null;
    },
    async [Symbol.asyncDispose]() {
      for (const runtime of Object.values(replicas)) await runtime.close();
      for (const id of foreign) await docker.getContainer(id).remove({ force: true });
      for (const one of [deployment, another]) {
        await sweep(one);
        const left = await leftovers(one);
        if (left.containers.length + left.networks.length + left.volumes.length > 0) {
          throw new Error(`${one} left ${JSON.stringify(left)}`);
        }
      }
    },
  };
});
