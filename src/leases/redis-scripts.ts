import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const SCRIPTS = [
  'take',
  'activate',
  'verify',
  'restart',
  'residue',
  'keepalive',
  'release',
  'adopt',
  'claim',
  'condemn-by-intent',
  'confirm',
  'drop',
  'end',
  'renew',
  'reassert',
  'handover',
  'add-spare',
  'claim-spare',
  'retire-spare',
  'pool',
  'tend-spares',
  'begin-census',
  'census',
  'counted',
  'end-census',
  'unheld',
  'read',
  'page',
  'settle-engine',
  'append-history',
  'read-history',
] as const;
export type ScriptName = (typeof SCRIPTS)[number];

const LIBRARY = ['context', 'record', 'step'] as const;

/** The text of every script, each with the library before it. */
export function loadScripts(): ReadonlyMap<ScriptName, string> {
  const read = (name: string): string => readFileSync(join(import.meta.dirname, 'lua', `${name}.lua`), 'utf8');
  const library = LIBRARY.map((name) => read(`lib/${name}`)).join('\n');
  return new Map(SCRIPTS.map((name) => [name, `${library}\n${read(name)}`]));
}
