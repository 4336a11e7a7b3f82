import { UNKNOWN_HOLD } from '../../src/domain/ids.ts';
import { short } from './judge.ts';
import { OPERATION_NAMES } from './operations.ts';
import type { Meeting } from './run.ts';
import { OWNERS, type Scene, SPARED, STARTS } from './scene.ts';

/** The record, the containers and the clients in one line. Fences and holds are told from the first one on. */
export function describeWorld(scene: Scene): string {
  const record = scene.record();
  const now = scene.database.now();
  const first = scene.clock.wall() * 1000;
  const number = (fence: number): string =>
    fence === UNKNOWN_HOLD ? '?' : `${fence >= first ? fence - first + 1 : fence}`;
  const said = [];
  if (record === null) said.push('no record');
  else {
    const { state, owner, fence, container, expiresAt, holds, verified, life } = record;
    const counting = [...holds].filter(([, until]) => until > now).map(([hold]) => number(hold));
    said.push(`${state} of ${owner} fence ${number(fence)}`, container === null ? '-' : short(container));
    said.push(expiresAt > now ? 'live' : 'expired', `holds {${counting}}`, verified ? 'verified' : 'unverified');
    if (life !== scene.database.life()) said.push('of an earlier life');
  }
  const containers = scene.engine.containers.map(
    ({ id, name, state }) => `${short(id)} ${state}${name.includes('condemned') ? ' condemned' : ''}`,
  );
  const clients = [...scene.judge.clients].map(({ container, hold }) => `${short(container)}/${number(hold)}`);
  return `${said.join(' ')} | ${containers.join(', ') || 'no container'} | clients {${clients}}`;
}

/** `warm acquire@a+reap@b`. */
export function describeMeeting({ start, actors }: Meeting): string {
  return `${start} ${actors.map(({ operation, replica }) => `${operation}@${OWNERS[replica]}`).join('+')}`;
}

export function parseMeeting(name: string): Meeting {
  const [start, list = ''] = name.split(' ');
  const actors = list.split('+').map((part) => {
    const [operation, owner] = part.split('@');
    const replica = (OWNERS as readonly (string | undefined)[]).indexOf(owner);
    const known = OPERATION_NAMES.find((other) => other === operation);
    if (known === undefined || replica < 0) throw new Error(`no such actor: ${part}`);
    return { operation: known, replica };
  });
  const known = ([...STARTS, SPARED] as const).find((other) => other === start);
  if (known === undefined) throw new Error(`no such start: ${start}`);
  return { start: known, actors };
}
