import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { Profile } from '../../src/domain/profile.ts';
import { Images } from '../../src/lifecycle/images.ts';
import { World } from '../support/world.ts';

const absent = { kind: 'image_unavailable' } as const;

/** Two profiles, `never` pulled and pulled `if-missing`, on an engine that has neither image. */
function images(...names: readonly ('never' | 'if-missing')[]) {
  const world = new World();
  const { runtime, points } = world.replica('a');
  const profiles = new Map<string, Profile>(
    names.map((pull) => [pull, { ...world.profile, name: pull, image: `image:${pull}`, pull }]),
  );
  for (const { image } of profiles.values()) world.engine.missImage(image, 'pullable');
  return { engine: world.engine, points, images: new Images({ runtime, profiles }) };
}

test('an image that may be pulled is pulled ahead of the first acquire, and then no more', async () => {
  const { engine, points, images: all } = images('if-missing');
  expect(all.anyPresent).toBe(false);
  await all.pass();
  expect(engine.hasImage('image:if-missing')).toBe(true);
  expect(all.anyPresent).toBe(true);
  expect(all.problem).toBeNull();
  await all.pass();
  expect(points.count('ensureImage')).toBe(1);
});

test('an image that is never pulled is missed by name, until somebody brings it', async () => {
  const { engine, points, images: all } = images('never');
  await expect(all.pass()).rejects.toMatchObject({ code: absent.kind });
  expect(points.count('ensureImage')).toBe(0);
  expect(all.anyPresent).toBe(false);
  expect(all.problem).toContain('image:never');
  engine.pull('image:never');
  await all.pass();
  expect(all.anyPresent).toBe(true);
  expect(all.problem).toBeNull();
});

test('one profile with its image is enough; what the others miss is told', async () => {
  const { engine, images: all } = images('never', 'if-missing');
  await all.pass();
  expect(all.anyPresent).toBe(true);
  expect(all.problem).toContain('profile never');
  expect(all.problem).not.toContain('profile if-missing');
  engine.missImage('image:if-missing', 'unpullable');
  await expect(all.pass()).rejects.toMatchObject({ code: absent.kind });
  expect(all.anyPresent).toBe(false);
  expect(all.problem).toMatch(/profile never.*image:if-missing/s);
});

test('an engine that does not answer takes nothing back that is known to be there', async () => {
  const { points, images: all } = images('if-missing');
  await all.pass();
  points.failNext('hasImage', new BrokerError('runtime_timeout', 'no answer'));
  await all.pass();
  expect(all.anyPresent).toBe(true);
  expect(all.problem).toBe('no answer');
});
