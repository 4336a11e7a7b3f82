import type { Sighting } from '../domain/container.ts';
import { BrokerError } from '../domain/errors.ts';
import type { Found } from './container-finder.ts';

/**
 * What a caller may conclude. Only a container that will not run again by itself is `stopped`: a paused or restarting
 * one keeps its user's work and may be back at once, and one that is being removed is not gone yet.
 */
export function sightingOf(found: Found): Sighting {
  if (found.kind === 'gone') return { kind: 'gone' };
  if (found.kind === 'foreign') {
    const message = `container ${found.name} is not of this deployment: rename it or remove it`;
    return { kind: 'unknown', cause: new BrokerError('foreign_container', message) };
  }
  const { container } = found;
  switch (container.state) {
    case 'running':
      return { kind: 'running', container };
    case 'created':
    case 'exited':
    case 'dead':
      return { kind: 'stopped', container };
    default:
      return {
        kind: 'unknown',
        cause: new BrokerError('sandbox_unsettled', `container ${container.name} is ${container.state}`),
      };
  }
}
