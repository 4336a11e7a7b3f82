import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const FLUSH_BYTES = 8 * 1024;

/**
 * A file descriptor or a path that lines are written to. The lines of one turn of the event loop are written together,
 * so that a busy broker does not make a system call for each; what waits is written when the process ends by itself.
 */
export function logOutput(dest: number | string): DestinationStream {
  const output = pino.destination({ dest, sync: true, minLength: FLUSH_BYTES });
  let planned = false;
  const flush = (): void => {
    planned = false;
    output.flushSync();
  };
  process.once('exit', flush);
  return {
    write(line) {
      output.write(line);
      if (planned) return;
      planned = true;
      setImmediate(flush);
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
