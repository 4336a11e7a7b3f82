import type { Container, ContainerState } from '../domain/container.ts';
import { asContainerId } from '../domain/ids.ts';
import { parseContainerName } from '../domain/names.ts';
import { type Address, type AddressRules, addressOf, type ListedNetwork, type ListedPort } from './addresses.ts';
import { isOfDeployment, readLabels } from './labels.ts';

/** One entry of the engine's list, as far as it is read. Any part may be missing. */
export interface ListEntry {
  readonly Id: string;
  readonly Names?: readonly string[] | null;
  readonly Created?: number | null;
  readonly State?: string | null;
  readonly Labels?: Readonly<Record<string, string>> | null;
  readonly Ports?: readonly ListedPort[] | null;
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, ListedNetwork>> | null } | null;
}

/** From where a list is looked at. */
export interface ListView {
  readonly deployment: string;
  readonly namePrefix: string;
  readonly rules: AddressRules;
  /** The port that a profile listens on; null: no such profile here. */
  portOf(profile: string | null): number | null;
}

/** A container, and where the broker itself reaches it. */
export interface Seen {
  readonly container: Container;
  readonly probeUrl: string | null;
}

/** Reads one entry; null for one that is not of this deployment. */
export function readEntry(entry: ListEntry, view: ListView): Seen | null {
  if (!isOfDeployment(entry.Labels, view.deployment)) return null;
  const id = asContainerId(entry.Id);
  const name = nameOf(entry);
  const labels = readLabels(entry.Labels ?? {});
  const state = stateOf(entry.State);
  const address = state === 'running' ? listedAddress(entry, labels.profile, view) : null;
  return {
    container: {
      id,
      name,
      role: parseContainerName(view.namePrefix, name, id),
      state,
      labels,
      createdAt: createdAt(entry.Created),
      url: address?.url ?? null,
    },
    probeUrl: address?.probeUrl ?? null,
  };
}

/** A container's own name, without the slash; a second slash would make it another container's alias. */
export function nameOf({ Names }: ListEntry): string {
  const own = (Names ?? []).find((name) => name.lastIndexOf('/') <= 0) ?? '';
  return own.startsWith('/') ? own.slice(1) : own;
}

function listedAddress(entry: ListEntry, profile: string | null, view: ListView): Address | null {
  return addressOf(entry.Ports ?? [], entry.NetworkSettings?.Networks ?? {}, view.portOf(profile), view.rules);
}

const STATES: Readonly<Record<string, ContainerState>> = {
  created: 'created',
  running: 'running',
  paused: 'paused',
  restarting: 'restarting',
  removing: 'removing',
  exited: 'exited',
  dead: 'dead',
};

/** A word that is none of the engine's is read as `restarting`: neither fit to be handed out nor dead. */
function stateOf(word: string | null | undefined): ContainerState {
  return STATES[word?.toLowerCase() ?? ''] ?? 'restarting';
}

function createdAt(seconds: number | null | undefined): number | null {
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? Math.round(seconds * 1000) : null;
}
