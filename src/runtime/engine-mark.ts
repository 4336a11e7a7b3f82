import { createHash } from 'node:crypto';
import type { VolumeInspectInfo } from 'dockerode';
import { BrokerError } from '../domain/errors.ts';
import { asEngineMark, type EngineMark } from '../domain/ids.ts';
import type { NewId } from '../domain/timing.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';
import { isOfDeployment, LABEL } from './labels.ts';

export interface EngineMarkOptions {
  readonly daemon: DockerDaemon;
  readonly deployment: string;
  readonly newId: NewId;
}

/**
 * Reads the value by which a deployment knows its engine, and leaves one where there is none: the label of an empty
 * volume with a fixed name. Creating a volume that exists changes nothing, so of several that create it at once the
 * first one's value is everybody's. It is read each time: another engine may stand at the same address.
 */
export async function engineMark({ daemon, deployment, newId }: EngineMarkOptions): Promise<EngineMark> {
  const name = markVolumeName(deployment);
  const volume = (await find(daemon, name)) ?? (await make(daemon, name, deployment, { [LABEL.mark]: newId() }));
  const mark = volume.Labels?.[LABEL.mark];
  if (!isOfDeployment(volume.Labels, deployment) || mark === undefined || mark === '') {
    throw new BrokerError(
      'runtime_unavailable',
      `volume ${name} is in the engine without this deployment's mark: remove it if nobody needs it`,
    );
  }
  return asEngineMark(mark);
}

/** The volume whose presence says that brokers of this deployment share a lease store; null where it is not there. */
export async function sharedNote(daemon: DockerDaemon, deployment: string, leave: boolean): Promise<string | null> {
  const name = sharedVolumeName(deployment);
  if ((await find(daemon, name)) !== null) return name;
  if (leave) await make(daemon, name, deployment);
  return leave ? name : null;
}

async function make(
  daemon: DockerDaemon,
  name: string,
  deployment: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<VolumeInspectInfo> {
  await daemon.call(`create volume ${name}`, (docker, abortSignal) =>
    docker.createVolume({
      Name: name,
      Labels: { [LABEL.deployment]: deployment, ...labels },
      abortSignal,
    } as object),
  );
  const volume = await find(daemon, name);
  if (volume === null) throw new BrokerError('runtime_unavailable', `volume ${name} was made and is not there`);
  return volume;
}

async function find(daemon: DockerDaemon, name: string): Promise<VolumeInspectInfo | null> {
  try {
    return await daemon.call(`inspect volume ${name}`, (docker, abortSignal) =>
      docker.getVolume(name).inspect({ abortSignal }),
    );
  } catch (error) {
    if (refusalOf(error)?.status === 404) return null;
    throw error;
  }
}

export const markVolumeName = (deployment: string): string => `sandbox-broker-mark-${short(deployment)}`;

export const sharedVolumeName = (deployment: string): string => `sandbox-broker-shared-${short(deployment)}`;

const short = (deployment: string): string =>
  createHash('sha256').update(deployment, 'utf8').digest('hex').slice(0, 16);
