import { kindOf, type Reader, type Surroundings, show } from './reader.ts';
import { fits, type TextRule } from './text-rule.ts';

/** What a key may hold: how it is written, what it is when absent, and what becomes of it. */
export interface Field<T, Suffix extends string = ''> {
  /** What the result's name has after the key's own: its unit. */
  readonly suffix: Suffix;
  /** What may be written, in words. */
  readonly allowed: string;
  /** The default, as it would be written; undefined: the key has to be given. */
  readonly initial: unknown;
  /** The fields below, by key; `[]` stands for any item and `<name>` for any key. */
  readonly parts: Fields;
  /** Reads what was written at a path. A problem is reported to the reader, and the result is then a stand-in. */
  read(given: unknown, at: string, reader: Reader, allowed?: string): T;
  standIn(): T;
}

export type Fields = Readonly<Record<string, Field<unknown, string>>>;

/** What a field makes of its value. */
export type Read<F> = F extends Field<infer T, string> ? T : never;

/** What a section makes of its keys: the same names, with their units. */
export type ReadSection<F extends Fields> = {
  readonly [K in keyof F & string as `${K}${F[K]['suffix']}`]: Read<F[K]>;
};

interface Leaf<T, Suffix extends string> {
  readonly suffix: Suffix;
  readonly allowed: string;
  readonly initial: unknown;
  readonly empty: T;
  readonly show?: (given: unknown) => string;
  /** undefined: not allowed. `loose`: it came out of a variable, so that a number is text. */
  parse(value: unknown, loose: boolean, reader: Reader | null): T | undefined;
}

function leaf<T, Suffix extends string>(spec: Leaf<T, Suffix>): Field<T, Suffix> {
  const { suffix, initial, parse } = spec;
  const shown = spec.show ?? show;
  const standIn = (): T => parse(initial, false, null) ?? spec.empty;
  return {
    suffix,
    initial,
    allowed: spec.allowed,
    parts: {},
    standIn,
    read(given, at, reader, allowed = spec.allowed) {
      reader.note(at, shown(given));
      const value = typeof given === 'string' ? reader.expand(given, at) : given;
      if (value === undefined) return standIn();
      const result = parse(value, value !== given, reader);
      if (result === undefined) reader.refuse(at, `${shown(given)} is not allowed; allowed: ${allowed}`);
      return result ?? standIn();
    },
  };
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const UNIT_BYTES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;
/** The longest delay that a timer can be given, plus one. */
const TOO_LONG_MS = 2 ** 31;

function quantity(value: unknown, units: Readonly<Record<string, number>>): number {
  const [, digits, unit] = /^(\d{1,15})([a-zA-Z]+)$/.exec(typeof value === 'string' ? value : '') ?? [];
  return unit !== undefined && Object.hasOwn(units, unit) ? Number(digits) * units[unit]! : Number.NaN;
}

/** Milliseconds. With `zero`, 0 is allowed and means that. */
export function duration(initial: string | 0, zero?: string): Field<number, 'Ms'> {
  const least = zero === undefined ? 1 : 0;
  return leaf({
    suffix: 'Ms',
    allowed: `a duration such as 250ms, 10s, 5m or 1h, longer than 0 and shorter than 2^31 ms${zero === undefined ? '' : `, or 0 (${zero})`}`,
    initial,
    empty: least,
    parse(value) {
      const ms = value === 0 || value === '0' ? 0 : quantity(value, UNIT_MS);
      return ms >= least && ms < TOO_LONG_MS ? ms : undefined;
    },
  });
}

/** Bytes. */
export function size(initial: string, least: string): Field<number, 'Bytes'> {
  return leaf({
    suffix: 'Bytes',
    allowed: `a size such as 64KiB, 512MiB or 2GiB, at least ${least}`,
    initial,
    empty: 0,
    parse(value) {
      const bytes = quantity(value, UNIT_BYTES);
      return bytes >= quantity(least, UNIT_BYTES) && Number.isSafeInteger(bytes) ? bytes : undefined;
    },
  });
}

interface Range {
  readonly from: number;
  readonly to: number;
  readonly fraction?: boolean;
}

export function number({ from, to, fraction = false }: Range, initial?: number): Field<number> {
  return leaf({
    suffix: '',
    allowed: `a ${fraction ? '' : 'whole '}number from ${from} to ${to}`,
    initial,
    empty: from,
    parse(value, loose) {
      const read = loose && /^-?\d+(\.\d+)?$/.test(String(value)) ? Number(value) : value;
      const fits = typeof read === 'number' && read >= from && read <= to && (fraction || Number.isInteger(read));
      return fits ? read : undefined;
    },
  });
}

export function flag(initial: boolean): Field<boolean> {
  return leaf({
    suffix: '',
    allowed: 'true or false',
    initial,
    empty: initial,
    parse(value, loose) {
      if (loose && (value === 'true' || value === 'false')) return value === 'true';
      return typeof value === 'boolean' ? value : undefined;
    },
  });
}

export function oneOf<const V extends string>(values: readonly [V, ...V[]], initial: NoInfer<V> = values[0]): Field<V> {
  return leaf<V, ''>({
    suffix: '',
    allowed: values.join(' or '),
    initial,
    empty: initial,
    parse: (value) => values.find((known) => known === value),
  });
}

export function text(rule: TextRule, initial?: string): Field<string> {
  return leaf({
    suffix: '',
    empty: '',
    initial,
    ...rule,
    parse: (value) => (typeof value === 'string' && fits(rule, value) ? value : undefined),
  });
}

/** Text that is never shown. It has no default. */
export function secret(rule: TextRule): Field<string> {
  return text({ ...rule, show: (given) => (typeof given === 'string' ? '(hidden)' : kindOf(given)) });
}

/** PEM text, given as such or as the path of a file that holds it. */
export function pem(): Field<string> {
  return leaf({
    suffix: '',
    allowed: 'the path of a PEM file that can be read, or its text',
    initial: undefined,
    empty: '',
    show: (given) => (typeof given === 'string' && /-----|\n/.test(given) ? '(hidden)' : show(given)),
    parse: (value, _loose, reader) =>
      typeof value === 'string' && reader !== null ? readPem(value, reader.surroundings) : undefined,
  });
}

/** The PEM text itself, or that of the file; undefined when there is none. */
export function readPem(given: string, { readFile }: Surroundings): string | undefined {
  const isPem = (text: string): boolean => /^-----BEGIN [A-Z0-9 ]+-----/m.test(text);
  if (isPem(given)) return given;
  try {
    const content = readFile(given);
    return isPem(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** null, which is the default, or what the field allows. */
export function nullable<T, Suffix extends string>(field: Field<T, Suffix>): Field<T | null, Suffix> {
  const allowed = `${field.allowed}; or null`;
  return {
    suffix: field.suffix,
    allowed,
    initial: null,
    parts: field.parts,
    standIn: () => null,
    read(given, at, reader) {
      if (given !== null) return field.read(given, at, reader, allowed);
      reader.note(at, 'null');
      return null;
    },
  };
}
