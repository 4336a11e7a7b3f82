import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import closeWithGrace from 'close-with-grace';
import { Broker } from './broker.ts';
import { ConfigError } from './config/config-error.ts';
import { loadConfig, readText } from './config/load-config.ts';
import { messageOf } from './domain/errors.ts';
import { systemClock } from './observability/clock.ts';
import { createLogger } from './observability/logger.ts';

const USAGE = `Usage: npm start -- [--config config.yaml] [--check]
  --config FILE  the configuration; without it ./config.yaml, if there is one, else the defaults
  --check        says whether the configuration is valid, and ends
  --version      says the version, and ends
config.example.yaml holds every key of it; REDIS_URL and DOCKER_HOST are read too.`;
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** One line on standard error, and the end. */
function fail(message: string): never {
  process.stderr.write(`sandbox-broker: ${message}\n`);
  process.exit(1);
}

function readArguments(): { config: string | null; check: boolean } {
  try {
    const { values } = parseArgs({
      options: {
        config: { type: 'string' },
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        version: { type: 'boolean', default: false },
      },
    });
    if (values.help || values.version) {
      process.stdout.write(`${values.help ? USAGE : version}\n`);
      process.exit(0);
    }
    if (values.config === '') throw new Error('--config needs the name of a file');
    return { config: values.config ?? null, check: values.check };
  } catch (error) {
    return fail(`${messageOf(error)}\n${USAGE}`);
  }
}

function readConfig(path: string | null): ReturnType<typeof loadConfig> {
  try {
    return loadConfig({ path, env: process.env, readFile: readText });
  } catch (error) {
    if (error instanceof ConfigError) return fail(error.message);
    throw error;
  }
}

const args = readArguments();
const config = readConfig(args.config);
if (args.check) {
  process.stdout.write('The configuration is valid.\n');
  process.exit(0);
}

const owner = `${hostname()}:${crypto.randomUUID()}`;
const logger = createLogger(config.log.level, { deployment: config.deployment, owner });
const broker = new Broker({
  config,
  owner,
  version,
  logger,
  clock: systemClock,
  random: Math.random,
  newId: () => crypto.randomUUID(),
});

const ending = {
  delay: config.shutdown.drainTimeoutMs,
  logger: false as const,
  onSecondSignal: (signal: string) => logger.warn({ signal }, 'second signal; the process ends at once'),
  onSecondError: (err: unknown) =>
    logger.fatal({ err }, 'unexpected error during the shutdown; the process ends at once'),
  onTimeout: (ms: number) => logger.error({ ms }, 'the shutdown took too long; the process ends at once'),
};
closeWithGrace(ending, async ({ signal, err }) => {
  if (err !== undefined) logger.fatal({ err }, 'unexpected error; the process ends');
  else logger.info({ signal }, 'shutting down; a second signal ends the process at once');
  await broker.stop();
});

try {
  const { host, port } = await broker.start();
  logger.info({ host, port, store: config.store.type }, 'listening');
} catch (error) {
  await broker.stop();
  fail(messageOf(error));
}
