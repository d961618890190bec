import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('docs/compatibility.md', root), 'utf8');

/** The lines of the tables, without their heads. */
const lines = text
  .split('\n')
  .filter((line, i, all) => line.startsWith('|') && !/^\|-/.test(line) && !/^\|-/.test(all[i + 1] ?? ''));

const testsIn = (line: string): string[] => [...line.matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1] as string);

test('every line of docs/compatibility.md names a test', () => {
  expect(lines.length).toBeGreaterThan(20);
  expect(lines.filter((line) => testsIn(line).length === 0)).toEqual([]);
});

test('every test that it names is there', () => {
  const named = [...new Set(testsIn(text))];
  expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  expect(named.filter((path) => !/\.ts$/.test(path))).toEqual([]);
});
