import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseSync } from 'vite';
import { expect, test } from 'vitest';
import { HERMETIC, REAL } from '../support/behaviours.ts';

const root = resolve(import.meta.dirname, '..');
const KNOWN: ReadonlySet<string> = new Set([...HERMETIC, ...REAL]);
const NEEDS_THE_REAL_THING: ReadonlySet<string> = new Set(REAL);
const RUNNERS = new Set(['test', 'it', 'describe', 'suite']);
const FORBIDDEN = new Set(['skip', 'only', 'todo', 'skipIf', 'runIf', 'retry']);

type Node = { readonly type: string; readonly [key: string]: unknown };

interface Source {
  readonly path: string;
  readonly text: string;
  /** Every call of a runner (`test`, `describe.each(…)`, …). */
  readonly calls: readonly Node[];
}

const sources: readonly Source[] = (readdirSync(root, { recursive: true }) as string[])
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(root, name))
  .map((path) => {
    const text = readFileSync(path, 'utf8');
    const calls: Node[] = [];
    walk(parseSync(path, text).program as unknown as Node, (node) => {
      if (node.type === 'CallExpression' && RUNNERS.has(runnerOf(node) ?? '')) calls.push(node);
    });
    return { path: relative(root, path), text, calls };
  });
const isReal = ({ path }: Source): boolean => path.endsWith('.real.test.ts');

function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (typeof value === 'object' && value !== null) {
    if (typeof (value as Node).type === 'string') visit(value as Node);
    for (const child of Object.values(value)) walk(child, visit);
  }
}

/** The name at the root of `test.concurrent.each(table)(…)`: `test`. */
function runnerOf(node: Node): string | null {
  if (node.type === 'Identifier') return node.name as string;
  if (node.type === 'CallExpression') return runnerOf(node.callee as Node);
  if (node.type === 'MemberExpression') return runnerOf(node.object as Node);
  if (node.type === 'TaggedTemplateExpression') return runnerOf(node.tag as Node);
  return null;
}

/** The words of a title, as far as they stand in the source. */
function titleOf(call: Node): string {
  const [first] = call.arguments as readonly Node[];
  if (first?.type === 'Literal') return String(first.value);
  if (first?.type !== 'TemplateLiteral') return '';
  return (first.quasis as readonly { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…');
}

const idsIn = (title: string): readonly string[] => [...title.matchAll(/\[([A-Z]-\d+)\]/g)].map((match) => match[1]!);

/** `.skip`, `.only`, … on the way to the call, and the same as options. */
function forbiddenIn(call: Node): readonly string[] {
  const names: string[] = [];
  walk(call.callee, (node) => {
    if (node.type === 'MemberExpression') names.push((node.property as Node).name as string);
  });
  for (const argument of call.arguments as readonly Node[]) {
    if (argument.type !== 'ObjectExpression') continue;
    for (const property of argument.properties as readonly Node[]) {
      names.push(((property.key as Node | undefined)?.name as string | undefined) ?? '');
    }
  }
  return names.filter((name) => FORBIDDEN.has(name));
}

const each = (complain: (source: Source) => readonly string[]): readonly string[] =>
  sources.flatMap((source) => complain(source).map((complaint) => `${source.path}: ${complaint}`));

test('every behaviour that a title names is a known one', () => {
  const wrong = each(({ calls }) => calls.flatMap((call) => idsIn(titleOf(call)).filter((id) => !KNOWN.has(id))));
  expect(wrong).toEqual([]);
  expect(KNOWN.size).toBe(HERMETIC.length + REAL.length);
});

test('a title that claims the real thing stands in a file that runs against it', () => {
  const wrong = each((source) =>
    isReal(source)
      ? []
      : source.calls.map(titleOf).filter((title) => {
          return title.endsWith(' (real)') && idsIn(title).some((id) => NEEDS_THE_REAL_THING.has(id));
        }),
  );
  expect(wrong).toEqual([]);
});

test('a file that runs against the real thing uses no stand-in, unless the fault is the point', () => {
  const wrong = each((source) =>
    isReal(source)
      ? source.text
          .split('\n')
          .filter((line) => /\bfrom '[^']*\/fakes\/|import\('[^']*\/fakes\//.test(line))
          .filter((line) => !line.includes('// the fault is the point'))
      : [],
  );
  expect(wrong).toEqual([]);
});

test('no test is skipped, singled out, left for later or tried again', () => {
  const wrong = each(({ calls }) =>
    calls.flatMap((call) => forbiddenIn(call).map((name) => `${name} on "${titleOf(call)}"`)),
  );
  expect(wrong).toEqual([]);
});
