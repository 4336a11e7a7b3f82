import { expect, test } from 'vitest';
import { BrokerError } from '../../src/domain/errors.ts';
import type { BrokerEvent } from '../../src/domain/events.ts';
import type { Profile } from '../../src/domain/profile.ts';
import { Headroom } from '../../src/lifecycle/headroom.ts';
import { tinyProfile } from '../support/profiles.ts';
import { World } from '../support/world.ts';

const MIB = 2 ** 20;
const sized = (name: string, memoryBytes: number): Profile => {
  const profile = tinyProfile('image');
  return { ...profile, name, resources: { ...profile.resources, memoryBytes } };
};

function headroom(maxSandboxes: number, engineBytes: number) {
  const world = new World();
  world.engine.resources = { memoryBytes: engineBytes, cpus: 2 };
  const { runtime, points } = world.replica('a');
  const events: BrokerEvent[] = [];
  const profiles = [sized('small', 10 * MIB), sized('large', 100 * MIB), sized('middle', 50 * MIB)];
  const emit = (event: BrokerEvent): void => void events.push(event);
  return { points, events, headroom: new Headroom({ runtime, profiles, maxSandboxes, emit }) };
}

test('[C-01] an engine with too little memory for the largest profile is warned about, once', async () => {
  const { events, headroom: look, points } = headroom(11, 1_000 * MIB);
  await look.look();
  await look.look();
  const about = { maxSandboxes: 11, profile: 'large', neededBytes: 1_100 * MIB, engineBytes: 1_000 * MIB };
  expect(events).toEqual([{ type: 'capacity-exceeds-engine', ...about }]);
  expect(points.count('resources')).toBe(1);
});

test('[C-01] one whose memory does is not', async () => {
  const { events, headroom: look } = headroom(10, 1_000 * MIB);
  await look.look();
  expect(events).toEqual([]);
});

test('without a limit there is nothing to compare', async () => {
  const { events, headroom: look, points } = headroom(0, 1);
  await look.look();
  expect(events).toEqual([]);
  expect(points.count('resources')).toBe(0);
});

test('an engine that does not answer is asked again', async () => {
  const { events, headroom: look, points } = headroom(100, MIB);
  points.failNext('resources', new BrokerError('runtime_timeout', 'no answer'));
  await expect(look.look()).rejects.toMatchObject({ code: 'runtime_timeout' });
  await look.look();
  expect(events).toHaveLength(1);
});
