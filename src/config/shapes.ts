import type { Field, Fields, Read, ReadSection } from './fields.ts';
import { below, kindOf, type Reader } from './reader.ts';
import type { TextRule } from './text-rule.ts';

const NO_MERGE = 'YAML 1.2 merges no maps; write its keys out, or name the whole map by its alias';

/** A map with known keys. Absent keys have their defaults, unknown ones are refused. */
export function section<F extends Fields>(fields: F): Field<ReadSection<F>> {
  const names = Object.keys(fields);
  const words = `a map with ${names.join(', ')}`;
  const build = (each: (field: Field<unknown, string>, key: string) => unknown): ReadSection<F> =>
    Object.freeze(
      Object.fromEntries(Object.entries(fields).map(([key, field]) => [key + field.suffix, each(field, key)])),
    ) as ReadSection<F>;
  return {
    suffix: '',
    allowed: words,
    initial: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.initial])),
    parts: fields,
    standIn: () => build((field) => field.standIn()),
    read(given, at, reader, allowed = words) {
      if (!isMap(given)) return refuseKind(this, given, at, reader, allowed);
      reader.note(at, kindOf(given));
      for (const key of Object.keys(given).filter((name) => !Object.hasOwn(fields, name))) {
        reader.refuse(below(at, key), key === '<<' ? NO_MERGE : `unknown key; allowed: ${names.join(', ')}`);
      }
      return build((field, key) => {
        const value = Object.hasOwn(given, key) ? given[key] : field.initial;
        if (value !== undefined) return field.read(value, below(at, key), reader);
        reader.refuse(below(at, key), `is missing; allowed: ${field.allowed}`);
        return field.standIn();
      });
    },
  };
}

/** A list, empty by default. */
export function list<T>(item: Field<T>): Field<readonly T[]> {
  const words = `a list, each item ${item.allowed}`;
  return {
    suffix: '',
    allowed: words,
    initial: [],
    parts: { '[]': item },
    standIn: () => [],
    read(given, at, reader, allowed = words) {
      if (!Array.isArray(given)) return refuseKind(this, given, at, reader, allowed);
      reader.note(at, given.length === 0 ? '[]' : kindOf(given));
      return Object.freeze(given.map((value: unknown, index) => item.read(value, `${at}[${index}]`, reader)));
    },
  };
}

/** A map whose keys are names of the user's own. What is given replaces the default as a whole. */
export function record<F extends Field<unknown>>(
  name: TextRule & { readonly fits: RegExp },
  value: F,
  { initial, least = 0 }: { readonly initial: Readonly<Record<string, unknown>>; readonly least?: 0 | 1 },
): Field<Readonly<Record<string, Read<F>>>> {
  const words = `a map${least === 0 ? '' : ' with at least one entry'}, each key ${name.allowed}, each value ${value.allowed}`;
  return {
    suffix: '',
    allowed: words,
    initial,
    parts: { '<name>': value },
    standIn: () => ({}),
    read(given, at, reader, allowed = words) {
      if (!isMap(given)) return refuseKind(this, given, at, reader, allowed);
      if (Object.keys(given).length < least) reader.refuse(at, `an empty map is not allowed; allowed: ${allowed}`);
      const entries = Object.entries(given).map(([key, inner]) => {
        const path = below(at, key);
        if (!name.fits.test(key)) reader.refuse(path, `this name is not allowed; allowed: ${name.allowed}`);
        return [key, value.read(inner, path, reader)] as const;
      });
      return Object.freeze(Object.fromEntries(entries)) as Readonly<Record<string, Read<F>>>;
    },
  };
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The wrong kind of thing is told by its kind alone: it may be a secret in the wrong place. */
function refuseKind<T>(field: Field<T>, given: unknown, at: string, reader: Reader, allowed: string): T {
  reader.refuse(at, `${kindOf(given)} is not allowed; allowed: ${allowed}`);
  return field.standIn();
}
