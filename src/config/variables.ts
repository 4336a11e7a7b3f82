const REFERENCE = /\$(?<escaped>\$\{)|\$\{(?<inside>[^}]*)(?<end>\}?)/g;
const INSIDE = /^(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>.*))?$/s;

/**
 * Puts `${NAME}` and `${NAME:-default}` in. The default also stands in for an empty variable; `${NAME}` of an empty one
 * is the empty text. `$${` is a literal `${`. What a variable holds is not expanded again.
 */
export function expandVariables(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly value: string; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const value = text.replace(REFERENCE, (...args) => {
    const { escaped, inside, end } = args.at(-1) as { escaped?: string; inside?: string; end?: string };
    if (escaped !== undefined) return escaped;
    const { name, fallback } = (end === '}' && INSIDE.exec(inside ?? '')?.groups) || {};
    if (name === undefined) {
      problems.push('holds a ${ that is not ${NAME} or ${NAME:-default}; a literal one is written $${');
      return '';
    }
    const found = Object.hasOwn(env, name) ? env[name] : undefined;
    if (fallback !== undefined) return found || fallback;
    if (found === undefined) problems.push(`the environment variable ${name} is not set`);
    return found ?? '';
  });
  return { value, problems };
}
