import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { asOwnerId, asSandboxId, type ContainerId, parseFence } from '../../src/domain/ids.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { DockerRuntime } from '../../src/runtime/docker-runtime.ts';
import { buildTinyImage, type TinyImage } from './docker.ts';

/** For one file: its tiny image, there once its tests run. */
export function useTinyImage(): { readonly name: string } {
  let image: TinyImage | undefined;
  beforeAll(async () => {
    image = await buildTinyImage();
  });
  afterAll(() => image?.[Symbol.asyncDispose]());
  return {
    get name() {
      if (image === undefined) throw new Error('the image is there while tests run');
      return image.name;
    },
  };
}

/** A container of an identity that nothing else has; not started. */
export async function createdBy(runtime: DockerRuntime, profile: Profile): Promise<ContainerId> {
  const container = await runtime.create({
    id: asSandboxId(randomBytes(16).toString('hex')),
    profile,
    spec: 's',
    owner: asOwnerId('h:1'),
    fence: parseFence('7')!,
    userId: 'u',
    threadId: 't',
  });
  if (container === 'name_taken') throw new Error('the name is taken');
  return container;
}
