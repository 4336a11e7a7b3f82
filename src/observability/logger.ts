import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** So many are written at once, in the middle of a turn. */
const FLUSH_CHARS = 8 * 1024;

/**
 * A file descriptor or a path that lines are written to. The lines of one turn of the event loop are written together,
 * so that a busy broker does not make a system call for each; what waits is written when the process ends by itself.
 * Nothing is ever synced to a disk: that would hold up every request where the log is a file.
 */
export function logOutput(dest: number | string): DestinationStream {
  const output = pino.destination({ dest, sync: true });
  let lines = '';
  const flush = (): void => {
    if (lines === '') return;
    output.write(lines);
    lines = '';
  };
  process.once('exit', flush);
  return {
    write(line) {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (lines.length >= FLUSH_CHARS) flush();
    },
  };
}

/** One JSON line an event, on standard output unless told otherwise. */
export function createLogger(
  level: string,
  base: Readonly<Record<string, string>>,
  destination: DestinationStream = logOutput(1),
): Logger {
  const options = {
    level,
    base,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, destination);
}
