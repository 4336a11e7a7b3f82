/** What text is fit, as a pattern or a test and in words. `show` says how to show text that is not. */
export interface TextRule {
  readonly fits: RegExp | ((text: string) => boolean);
  readonly allowed: string;
  readonly show?: (given: unknown) => string;
}

export function fits({ fits: test }: TextRule, text: string): boolean {
  return test instanceof RegExp ? test.test(text) : test(text);
}
