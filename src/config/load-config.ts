import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import type { BrokerConfig } from './broker-config.ts';
import { ConfigError } from './config-error.ts';
import { crossCheck } from './cross-checks.ts';
import { Reader, type Surroundings } from './reader.ts';
import { resolve } from './resolve.ts';
import { schema } from './schema.ts';
import { parseYaml } from './yaml-text.ts';

const DEFAULT_PATH = './config.yaml';

/** What to do about a file that cannot be read, by the error's code. */
const ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file; name another one with --config',
  EISDIR: 'it is a folder; name a file in it with --config',
  EACCES: 'this user may not read it',
  ENCODING: 'it is not UTF-8; save it so',
};

export interface LoadRequest extends Surroundings {
  /** null: `./config.yaml` if there is one, else the defaults. */
  readonly path: string | null;
}

/**
 * Reads the configuration file and completes it. Throws one `ConfigError` that lists everything that is wrong, also
 * when a file that was asked for cannot be read.
 */
export function loadConfig({ path, env, readFile }: LoadRequest): BrokerConfig {
  const file = path ?? DEFAULT_PATH;
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (path === null && code === 'ENOENT') return defaultConfig(env, readFile);
    const advice = ADVICE[code];
    throw new ConfigError(file, [`${file}: the file cannot be read (${code})${advice ? `: ${advice}` : ''}`]);
  }
  return complete(text, { env, readFile }, file);
}

/** The configuration that a text and an environment make. Throws `ConfigError`. Reads no file but PEM files. */
export function parseConfig(text: string, env: Surroundings['env'], readFile = readText): BrokerConfig {
  return complete(text, { env, readFile }, 'the configuration');
}

/** The configuration without a file. Throws `ConfigError` when the environment's part cannot be used. */
export function defaultConfig(env: Surroundings['env'], readFile = readText): BrokerConfig {
  return complete('', { env, readFile }, 'the environment');
}

function complete(text: string, surroundings: Surroundings, source: string): BrokerConfig {
  const yaml = parseYaml(text);
  if (!yaml.ok) throw new ConfigError(source, yaml.problems);
  const reader = new Reader(surroundings);
  const settings = schema.read(yaml.value ?? {}, '', reader);
  crossCheck(settings, reader);
  const config = resolve(settings, reader);
  if (reader.problems.length > 0) throw new ConfigError(source, reader.problems);
  return config;
}

/** A file's text. Throws where it cannot be read, or is no text in UTF-8: what took its place would be no one's word. */
export function readText(path: string): string {
  const bytes = readFileSync(path);
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw Object.assign(new Error(`${path} is not UTF-8`), { code: 'ENCODING' });
}
