import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { snapshotPath } from '../../scripts/api.ts';
import { root } from '../../scripts/root.ts';
import { codeWordsOf, sectionsOf } from './markdown.ts';

describe('docs/api.md', () => {
  const api = readFileSync(snapshotPath, 'utf8');
  const document = readFileSync(join(root, 'docs', 'api.md'), 'utf8');

  test('names everything that the package exports, every member of it, and every word that a type allows', () => {
    expect(undocumented(api, document)).toEqual([]);
  });

  test('has a row for every error code', () => {
    const [, codes = ''] = /export type ErrorCode = ([^;]+);/.exec(api) ?? [];
    const errors = document.slice(document.indexOf('\n## Errors\n'));
    const rows = [...errors.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code);
    expect(rows).toEqual([...codes.matchAll(/'(\w+)'/g)].map(([, code]) => code));
  });
});

describe('the comparison of an API with its document', () => {
  const api = [
    '# package',
    'export interface Box {',
    '    readonly size: number;',
    '    open(key: string, options?: {',
    '        gently?: boolean;',
    '    }): void;',
    '    [Symbol.dispose](): void;',
    '}',
    "export type Colour = 'red' | 'blue';",
    'export { Box as Chest };',
    'export declare const make: {',
    '    box(): Lid;',
    '};',
    'export declare function paint(box: Box): void;',
    '',
    '# referred to, not exported',
    'interface Lid {',
    '    weight: number;',
    '}',
    'export declare function internal(): void;',
  ].join('\n');
  const document = [
    '# One',
    '`Box` has a `size`, `open(key, { gently })` and `[Symbol.dispose]`; `Chest` is another name of it.',
    '# Two',
    '`make.box()` gives a lid with a `weight`; `paint` takes a `Colour`:',
    '```ts',
    "paint(box, 'red'); // or 'blue'",
    '```',
  ].join('\n');

  test('finds nothing missing in a complete document', () => {
    expect(undocumented(api, document)).toEqual([]);
  });

  test.each([
    ['`size`', ['Box.size']],
    ['gently', ['Box.gently']],
    ['[Symbol.dispose]', ['Box.[Symbol.dispose]']],
    ["'blue'", ["Colour 'blue'"]],
    ['`Chest`', ['Chest']],
    ['make.box', ['make', 'make.box']],
    ['`weight`', ['Lid.weight']],
  ])('notices that %s is missing', (words, missing) => {
    expect(undocumented(api, document.replace(words, 'something'))).toEqual(missing);
  });

  test('wants a member where its owner is explained, not just anywhere', () => {
    const elsewhere = document.replace('`size`', 'length').replace('`weight`', '`weight` and a `size`');
    expect(undocumented(api, elsewhere)).toEqual(['Box.size']);
  });

  test('takes no word for code that stands in prose', () => {
    expect(undocumented(api, document.replace('`size`', 'size'))).toEqual(['Box.size']);
  });
});

/**
 * What a document does not mention in code of the public API. Members must be in a section that mentions their owner as well;
 * those of types that have no public name may be anywhere.
 */
function undocumented(api: string, document: string): string[] {
  const sections = sectionsOf(document).map(({ text }) => codeWordsOf(text));
  const everywhere = new Set(sections.flatMap((words) => [...words]));
  const [exported = '', referred = ''] = api.split(/^# referred to.*$/m);
  const missing: string[] = [];
  for (const { name, members, literals } of declarationsOf(exported)) {
    if (!everywhere.has(name)) missing.push(name);
    const about = sections.filter((words) => words.has(name));
    for (const member of members)
      if (!about.some((words) => words.has(wordOf(member)))) missing.push(`${name}.${member}`);
    for (const literal of literals) if (!document.includes(literal)) missing.push(`${name} '${literal}'`);
  }
  for (const { name, members, literals } of declarationsOf(referred)) {
    for (const member of members) if (!everywhere.has(wordOf(member))) missing.push(`${name}.${member}`);
    for (const literal of literals) if (!document.includes(literal)) missing.push(`${name} '${literal}'`);
  }
  return missing;
}

function wordOf(member: string): string {
  return /^\[Symbol\.(\w+)\]$/.exec(member)?.[1] ?? member;
}

interface Declaration {
  readonly name: string;
  readonly members: ReadonlySet<string>;
  /** The texts that a type consists of. */
  readonly literals: readonly string[];
}

/** Statements begin in the first column; every member, also one of a member's options, begins on a line of its own. */
function declarationsOf(api: string): Declaration[] {
  const found: Declaration[] = [];
  for (const statement of api.split(/^(?=\w)/m)) {
    const [, alias] = /^export \{ \w+ as (\w+) \};/.exec(statement) ?? [];
    const [, kind, named] =
      /^(?:export )?(?:declare )?(class|interface|type|const|function) ([\w$]+)/.exec(statement) ?? [];
    const name = alias ?? named;
    if (name === undefined) continue;
    const member = /^ +(?:(?:readonly|static|get|set) )*([\w$]+|\[Symbol\.\w+\])\??(?=[:(<])/gm;
    const members = new Set([...statement.matchAll(member)].map(([, word = '']) => word));
    members.delete('constructor');
    const literals = kind === 'type' ? [...statement.matchAll(/'([^']+)'/g)].map(([, text = '']) => text) : [];
    found.push({ name, members, literals });
  }
  return found;
}
