import { expandVariables } from './variables.ts';

/** What a configuration may draw on besides its text. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file's text; throws when it cannot be read. */
  readonly readFile: (path: string) => string;
}

/**
 * One reading of a configuration: collects every problem, and remembers of each key how to show it and whether it was
 * fit. What it shows is what was written, never what a variable held.
 */
export class Reader {
  readonly surroundings: Surroundings;
  readonly #problems: string[] = [];
  readonly #shown = new Map<string, string>();
  readonly #unfit = new Set<string>();

  constructor(surroundings: Surroundings) {
    this.surroundings = surroundings;
  }

  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Remembers how to show the value of a key. */
  note(at: string, shown: string): void {
    this.#shown.set(at, shown);
  }

  /** The text with its variables put in; undefined when it could not be done, which is then reported. */
  expand(text: string, at: string): string | undefined {
    const { value, problems } = expandVariables(text, this.surroundings.env);
    for (const problem of problems) this.refuse(at, problem);
    return problems.length === 0 ? value : undefined;
  }

  /** Reports a problem of one key (or variable). */
  refuse(at: string, problem: string): void {
    this.#unfit.add(at);
    this.#problems.push(`${at || 'the whole file'}: ${problem}`);
  }

  /**
   * Reports a key whose value does not go with those of `others`. Says nothing when one of them was refused on its
   * own account, since the value at hand is then a stand-in.
   */
  rule(at: string, others: readonly string[], holds: boolean, reason: string): void {
    if (holds || [at, ...others].some((key) => this.#isUnfit(key))) return;
    const beside = others.map((key) => `${key} ${this.#shown.get(key) ?? ''}`.trimEnd()).join(' and ');
    const value = this.#shown.get(at) ?? 'this';
    this.#problems.push(`${at}: ${value} is refused${beside && ` beside ${beside}`}: ${reason}`);
  }

  #isUnfit(at: string): boolean {
    return [...this.#unfit].some(
      (key) => key === '' || at === key || (at.startsWith(key) && /[.[]/.test(at[key.length]!)),
    );
  }
}

/** The path of a key below another. Of a key that is not plain, only the plain beginning: the rest may be a secret. */
export function below(at: string, key: string): string {
  const plain = /^(?:[\w.-]{1,64}|<<)$/.test(key) ? key : `${/^\w{0,40}/.exec(key)?.[0] ?? ''}…`;
  return at === '' ? plain : `${at}.${plain}`;
}

/** What kind of thing a value is, for messages that must not show it. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  return `a ${typeof value}`;
}

/** A value as it was written, on one line; lists and maps by their kind. */
export function show(value: unknown): string {
  if (typeof value !== 'string') return typeof value === 'object' ? kindOf(value) : String(value);
  const text = JSON.stringify(value);
  return text.length <= 100 ? text : `${text.slice(0, 96)}…"`;
}
