import { FakeEngine } from '../fakes/fake-engine.ts';
import { tinyProfile } from '../support/profiles.ts';
import { type RuntimeWorld, runtimeContract } from './runtime-contract.ts';

const DEPLOYMENT = 'fake';

runtimeContract('in memory', async (): Promise<RuntimeWorld> => {
  const engine = new FakeEngine();
  engine.neverReady('silent');
  const imageless = tinyProfile('nowhere:1', { name: 'imageless' });
  engine.missImage(imageless.image, 'unpullable');
  return {
    namePrefix: 'sandbox',
    deployment: DEPLOYMENT,
    runtime: engine.replica(DEPLOYMENT),
    peer: engine.replica(DEPLOYMENT),
    stranger: engine.replica('another'),
    profiles: {
      serving: tinyProfile('tiny:1', { name: 'serving' }),
      silent: tinyProfile('tiny:1', { name: 'silent' }),
      ending: tinyProfile('tiny:1', { name: 'ending' }),
    },
    imageless,
    letEnd: async (container) =>
      engine.kill(container, { exitCode: 3, reason: 'exited with code 3', logTail: 'line 29\nline 30' }),
    stop: async (container) => engine.kill(container, { exitCode: 0 }),
    startAgain: async (container) => engine.run(container),
    pause: async (container) => engine.pause(container),
    vanish: async (container) => engine.vanish(container),
    occupy: async (name) => {
      engine.addForeign(name);
    },
    stateOf: async (name) => engine.named(name)?.state ?? null,
    async [Symbol.asyncDispose]() {},
  };
});
