/** Everything that is wrong with a configuration, one line each. No line holds a secret. */
export class ConfigError extends Error {
  readonly problems: string[];

  /** `source`: the file, or what stood in for it. */
  constructor(source: string, problems: readonly string[]) {
    super([`${source} cannot be used:`, ...problems.map((problem) => `  ${problem}`)].join('\n'));
    this.name = 'ConfigError';
    this.problems = [...problems];
  }
}
