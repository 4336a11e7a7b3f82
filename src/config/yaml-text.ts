import { LineCounter, parseDocument, visit } from 'yaml';

export type YamlReply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Parses YAML 1.2, in which `${…}` may stand unquoted inside `{ }` and `[ ]` too. Problems are told by their kind and
 * place, one a line of the text: the parser's own messages quote the text, which may hold a secret.
 */
export function parseYaml(text: string): YamlReply {
  const lines = new LineCounter();
  const masked = mask(text);
  const document = parseDocument(masked, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const problems = new Map<number, string>();
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const { line, col } = lines.linePos(pos[0]);
    if (problems.has(line)) continue;
    const key = /^[\w.-]+/.exec(masked.slice(pos[0]))?.[0] ?? '';
    const what =
      code === 'DUPLICATE_KEY'
        ? `the key ${key} is given twice`
        : `not valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
    problems.set(line, `line ${line}, column ${col}: ${what}`);
  }
  if (problems.size > 0) return { ok: false, problems: [...problems.values()] };
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string') scalar.value = unmask(scalar.value);
    },
  });
  try {
    return { ok: true, value: document.toJS() };
  } catch {
    return { ok: false, problems: ['not valid YAML (aliases that lead nowhere or grow without end)'] };
  }
}

/** The braces of `${…}` are brackets to YAML. Two code points that no text has take their place while it parses. */
const mask = (text: string): string => text.replace(/\$\{([^{}\n"'\\]*)\}/g, '$\uFDD0$1\uFDD1');
const unmask = (text: string): string => text.replace(/\$\uFDD0([^\uFDD1]*)\uFDD1/g, '$${$1}');
