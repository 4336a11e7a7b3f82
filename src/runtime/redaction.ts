import type { Profile } from '../domain/profile.ts';

/** Shorter values say nothing by themselves, and hiding them would make any text unreadable. */
const SHORTEST = 4;
/** Variables that images set for themselves: no secrets, and their values are ordinary words of any log. */
const ORDINARY = new Set(['PATH', 'HOME', 'HOSTNAME', 'LANG', 'LC_ALL', 'PWD', 'SHELL', 'TERM', 'USER']);

/**
 * Hides what a profile keeps to itself (environment values of four characters or more, registry credentials) in text
 * that comes from an engine or a container.
 */
export class Redaction {
  readonly #secrets: readonly string[];

  constructor(profiles: Iterable<Profile>) {
    this.#secrets = [...profiles].flatMap((profile) => [
      ...Object.values(profile.environment),
      ...(profile.registryAuth === null ? [] : [profile.registryAuth.password]),
    ]);
  }

  /** `environment`: what a container really has, as `NAME=value`, for it may be older than the profile. */
  apply(text: string, environment: readonly string[] = []): string {
    const own = environment.map(split).filter(([name]) => !ORDINARY.has(name));
    let result = text;
    for (const secret of pieces([...this.#secrets, ...own.map(([, value]) => value)])) {
      result = result.replaceAll(secret, '[redacted]');
    }
    return result;
  }
}

/** A value of several lines may be seen line by line. The longest go first: one value may be part of another. */
function pieces(values: readonly string[]): string[] {
  const all = new Set(values.flatMap((value) => [value, ...value.split(/\r?\n/)]));
  return [...all].filter((piece) => piece.length >= SHORTEST).sort((a, b) => b.length - a.length);
}

function split(variable: string): readonly [name: string, value: string] {
  const at = variable.indexOf('=');
  return at < 0 ? [variable, ''] : [variable.slice(0, at), variable.slice(at + 1)];
}
