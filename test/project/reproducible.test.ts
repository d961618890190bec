import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { full, random, seed, some } from '../seed.ts';
import { readSources, type Source, source } from './sources.ts';

// `npm test` does the same in every run: whatever tests choose at random follows from `seed` in test/seed.ts.

const FORBIDDEN = /\b(?:Math\.random|getRandomValues|randomBytes|randomInt|randomFillSync)\b/g;
const PROPERTY = /\bfc\s*\.\s*(?:assert|check|sample|statistics)\(/g;

/** Random choices that do not follow from a seed, as `path: what`. */
function unseeded({ path, code, text }: Source): string[] {
  const drawn = [...code.matchAll(FORBIDDEN)].map(([what]) => `${path}: ${what}`);
  const properties = [...code.matchAll(PROPERTY)]
    .filter(({ index }) => !/\bruns\(|\bseed:/.test(secondArgument(code, index)))
    .map(({ index }) => `${path}: ${text.slice(index, text.indexOf('(', index))} without a seed`);
  return [...drawn, ...properties];
}

/** The second argument of the call at `at`, to the end of the call; empty if there is none. */
function secondArgument(code: string, at: number): string {
  let depth = 0;
  let from = code.length;
  for (let i = code.indexOf('(', at); i < code.length; i++) {
    const character = code[i] as string;
    if ('([{'.includes(character)) depth++;
    if (')]}'.includes(character)) depth--;
    if (character === ',' && depth === 1) from = Math.min(from, i);
    if (depth === 0) return code.slice(from, i);
  }
  return '';
}

test('no test draws numbers that a second run would not draw', () => {
  const sources = readSources('test').filter(({ path }) => path !== 'project/reproducible.test.ts');
  expect(sources.length).toBeGreaterThan(100);
  const folder = join(root, 'packages', 'browse', 'test');
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.ts')))
    sources.push(source(`packages/browse/test/${name}`, readFileSync(join(folder, name), 'utf8')));
  expect(sources.flatMap(unseeded)).toEqual([]);
});

test('such draws are found', () => {
  const wrong = [
    'const x = Math.random();',
    'crypto.getRandomValues(bytes);',
    'fc.assert(fc.property(fc.nat(), (seed) => seed >= 0));',
    'await fc.assert(\n  property,\n  { numRuns: 60 },\n);',
    'fc.sample(programs, 10)',
  ];
  for (const text of wrong) expect(unseeded(source('a.test.ts', text)), text).toHaveLength(1);
  const right = [
    "fc.assert(property, runs('a', 10),\n);",
    "fc.sample(all, { seed: seed('a'), numRuns: 5 })",
    '// Math.random',
  ];
  for (const text of right) expect(unseeded(source('a.test.ts', text)), text).toEqual([]);
});

test.runIf(process.env.H5LOG_SEED === undefined)('seeds and choices follow from the name of a suite', () => {
  expect([seed('log model'), seed('fuzzed files')]).toEqual([144424000, 576366765]);
  expect(random(seed('log model'))()).toBe(0.17046109098009765);
  const all = Array.from({ length: 12 }, (_, i) => i);
  expect(some(all, 'files to dump', (i) => i === 3)).toEqual(full ? all : [1, 3, 6, 11]);
});
