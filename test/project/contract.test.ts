import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { publicApi, snapshotPath } from '../../scripts/api.ts';
import { root, tsc } from '../../scripts/root.ts';
import { notBuilt, notBuiltParts } from './not-built.ts';

const contract = read('contract.d.ts');
const checks = read('contract-check.ts');
const missingNames = notBuilt.filter((entry) => !entry.includes('.'));
const missingMembers = notBuilt.filter((entry) => entry.includes('.'));

describe('the public API', () => {
  let api = '';
  beforeAll(() => {
    api = publicApi();
  });

  test('is the committed one (npm run api updates test/project/api.txt)', () => {
    expect(api).toBe(readFileSync(snapshotPath, 'utf8'));
  });

  test('has nothing that is still listed as not built', () => {
    const declared = [
      ...api
        .split(/^\/\/ /m, 1)
        .join()
        .matchAll(/^export (?:declare )?(?:class|interface|type|const|function) (\w+)/gm),
    ];
    const names = new Set(declared.map(([, name]) => name));
    expect(missingNames.filter((name) => names.has(name))).toEqual([]);
    expect(missingMembers.filter((entry) => memberLines(api, entry).length > 0)).toEqual([]);
  });
});

describe('the contract', () => {
  test('is compared name by name', () => {
    const names = [...contract.matchAll(/^export (?:declare )?(?:class|interface|type|const|function) (\w+)/gm)].map(
      ([, name]) => name ?? '',
    );
    for (const [, list] of contract.matchAll(/^export \{ \w+ as (\w+) \}/gm)) names.push(list ?? '');
    const compared = [...checks.matchAll(/^ {2}(\w+): /gm)].map(([, name]) => name).sort();
    expect(compared).toEqual([...new Set(names)].sort());
    expect(missingNames.filter((name) => !names.includes(name))).toEqual([]);
    expect(missingMembers.filter((entry) => memberLines(contract, entry).length === 0)).toEqual([]);
    expect(notBuiltParts.filter((text) => !contract.includes(text))).toEqual([]);
  });

  test('is kept by what is built', () => {
    const folder = join(root, '.cache', 'contract');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const parts = notBuiltParts.reduce((text, part) => text.replace(part, ''), contract);
    writeFileSync(join(folder, 'contract.d.ts'), missingMembers.reduce(withoutMember, parts));
    writeFileSync(join(folder, 'contract-check.ts'), missingNames.reduce(withoutCheck, checks));
    const compilerOptions = { skipLibCheck: false, noUnusedLocals: false };
    const project = {
      extends: '../../tsconfig.json',
      compilerOptions,
      include: ['*.ts', '../../src/page.d.ts'],
      exclude: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project));
    expect(tsc(['-p', folder]).output).toBe('');
  });
});

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function withoutCheck(text: string, name: string): string {
  return text.replace(new RegExp(`^ {2}${name}: .*\\n(?:(?: {3,}| {2}\\]).*\\n)*`, 'm'), '');
}

function withoutMember(text: string, entry: string): string {
  const gone = new Set(memberLines(text, entry));
  return text
    .split('\n')
    .filter((_, line) => !gone.has(line))
    .join('\n');
}

/** The line numbers of `Class.member`, all overloads, in text where every member begins on a line of its own. */
function memberLines(text: string, entry: string): number[] {
  const [owner = '', member = ''] = entry.split(/\.(.*)/);
  const lines = text.split('\n');
  const head = lines.findIndex((line) => new RegExp(`^export (declare class|interface) ${owner}\\b`).test(line));
  const found: number[] = [];
  if (head < 0) return found;
  const indent = lines[head + 1]?.search(/\S/) ?? 0;
  let taken = false;
  for (let number = head + 1; number < lines.length && lines[number] !== '}'; number++) {
    const line = lines[number] ?? '';
    // A line indented more, or one that closes a bracket, continues the member above it.
    if (line.search(/\S/) === indent && /^\s*[\w[/]/.test(line)) {
      taken = /^\s*(?:static |readonly |get )*(\[?[\w.]+\]?)/.exec(line)?.[1] === member;
    }
    if (taken) found.push(number);
  }
  return found;
}
