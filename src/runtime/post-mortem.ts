import type { ContainerInspectInfo } from 'dockerode';
import type { ContainerId } from '../domain/ids.ts';
import type { PostMortem } from './container-runtime.ts';
import { type DockerDaemon, refusalOf } from './docker-daemon.ts';
import { isOfDeployment } from './labels.ts';
import { demultiplex, LOG_LINES, lastLines, plainText } from './log-tail.ts';
import type { Redaction } from './redaction.ts';

export interface Coroner {
  readonly daemon: DockerDaemon;
  readonly deployment: string;
  readonly redaction: Redaction;
}

/**
 * How a container of this deployment ended, with its last log lines, free of its environment's values; null if it is
 * gone. One that runs has no exit code. Logs that cannot be read are empty.
 */
export async function postMortem(
  { daemon, deployment, redaction }: Coroner,
  container: ContainerId,
  limitMs: number = daemon.timeoutMs,
): Promise<PostMortem | null> {
  const short = container.slice(0, 12);
  let info: ContainerInspectInfo;
  try {
    info = await daemon.call(
      `inspect container ${short}`,
      (docker, abortSignal) => docker.getContainer(container).inspect({ abortSignal }),
      limitMs,
    );
  } catch (error) {
    if (refusalOf(error)?.status === 404) return null;
    throw error;
  }
  if (!isOfDeployment(info.Config?.Labels, deployment)) return null;
  const logs = await daemon
    .call(
      `read the logs of container ${short}`,
      (docker, abortSignal) =>
        docker
          .getContainer(container)
          .logs({ stdout: true, stderr: true, tail: LOG_LINES, follow: false, abortSignal }),
      limitMs,
    )
    .then(textOf, () => '');
  const environment = info.Config.Env ?? [];
  const hide = (text: string): string => redaction.apply(text, environment);
  const running = info.State.Running || info.State.Paused;
  return {
    exitCode: running || info.State.Status === 'created' ? null : info.State.ExitCode,
    reason: reasonOf(info.State, hide),
    endedAt: endedAt(info.State.FinishedAt),
    // Twice: what stood between the characters of a value is gone afterwards.
    logTail: lastLines(hide(plainText(hide(logs)))),
  };
}

/** One line for an error: how it ended, and its last words. */
export function describeEnd(end: PostMortem | null): string {
  if (end === null) return 'nothing is left of it';
  return end.logTail === '' ? `${end.reason}; it logged nothing` : `${end.reason}; its last log lines:\n${end.logTail}`;
}

type State = ContainerInspectInfo['State'];

function reasonOf({ Status, OOMKilled, Error: words, ExitCode }: State, redact: (text: string) => string): string {
  if (OOMKilled) return 'out of memory';
  if (words) return redact(words);
  if (Status === 'created') return 'never started';
  if (Status !== 'exited' && Status !== 'dead') return Status;
  if (ExitCode === 137) return 'killed';
  if (ExitCode === 143) return 'terminated';
  return `exited with code ${ExitCode}`;
}

/** Engines write the year 1 for what has not happened. */
function endedAt(time: string | undefined): number | null {
  const value = Date.parse(time ?? '');
  return Number.isFinite(value) && value > 0 ? value : null;
}

/** The client parses what happens to be JSON; text is wanted. */
function textOf(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return demultiplex(reply);
  return typeof reply === 'string' ? reply : JSON.stringify(reply);
}
