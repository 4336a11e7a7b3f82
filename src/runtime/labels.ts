import type { ContainerLabels } from '../domain/container.ts';
import { asOwnerId, type Fence, formatFence, type OwnerId, parseFence } from '../domain/ids.ts';

/** Every label that the broker puts on containers, networks and volumes. */
export const LABEL = {
  deployment: 'sandbox-broker.deployment',
  profile: 'sandbox-broker.profile',
  spec: 'sandbox-broker.spec',
  owner: 'sandbox-broker.owner',
  fence: 'sandbox-broker.fence',
  user: 'sandbox-broker.user',
  thread: 'sandbox-broker.thread',
  /** On the volume by which an engine is known: the random value. */
  mark: 'sandbox-broker.mark',
} as const;

type Labels = Readonly<Record<string, string>>;

export interface LabelledContainer {
  readonly deployment: string;
  readonly profile: string;
  readonly spec: string;
  readonly owner: OwnerId;
  /** Whose it is from the beginning; null for a spare. */
  readonly handout: { readonly fence: Fence; readonly userId: string; readonly threadId: string } | null;
}

/** The labels of a new container. User and thread are written as base64url, so that any text is safe in them. */
export function writeLabels({ deployment, profile, spec, owner, handout }: LabelledContainer): Record<string, string> {
  const labels = {
    [LABEL.deployment]: deployment,
    [LABEL.profile]: profile,
    [LABEL.spec]: spec,
    [LABEL.owner]: owner,
  };
  if (handout === null) return labels;
  return {
    ...labels,
    [LABEL.fence]: formatFence(handout.fence),
    [LABEL.user]: encode(handout.userId),
    [LABEL.thread]: encode(handout.threadId),
  };
}

/** What a container's labels say; null for each part that is missing or that the broker could not have written. */
export function readLabels(labels: Labels): ContainerLabels {
  const owner = text(labels[LABEL.owner]);
  const fence = text(labels[LABEL.fence]);
  return {
    profile: text(labels[LABEL.profile]),
    spec: text(labels[LABEL.spec]),
    owner: owner === null ? null : asOwnerId(owner),
    fence: fence === null ? null : parseFence(fence),
    userId: decode(labels[LABEL.user]),
    threadId: decode(labels[LABEL.thread]),
  };
}

export function isOfDeployment(labels: Labels | null | undefined, deployment: string): boolean {
  return labels?.[LABEL.deployment] === deployment;
}

/** The engine's filter for what belongs to a deployment. */
export function deploymentFilter(deployment: string): string {
  return `${LABEL.deployment}=${deployment}`;
}

function encode(value: string): string {
  return Buffer.from(value, 'utf8').toString('base64url');
}

/** Only what `encode` gives is read: anything else comes from somebody else. */
function decode(label: string | undefined): string | null {
  const coded = text(label);
  if (coded === null) return null;
  const value = Buffer.from(coded, 'base64url').toString('utf8');
  return encode(value) === coded ? value : null;
}

function text(label: string | undefined): string | null {
  return typeof label === 'string' && label !== '' ? label : null;
}
