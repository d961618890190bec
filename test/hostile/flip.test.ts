import { describe, expect, test } from 'vitest';
import { full, random, seed, some } from '../seed.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { samples, stride } from './samples.ts';

const files = samples();
const next = random(seed('flipped bits'));

describe('an intact file', () => {
  test.each(files)('$name opens', ({ name, bytes }) => {
    const cases = new Cases();
    cases.expect(cases.run(name, 'intact', bytes), 'opened', name);
    expect(cases.problems).toEqual([]);
  });
});

test('a flipped bit in every byte', PATIENCE, () => {
  const cases = new Cases();
  for (const { name, bytes } of some(files, 'files with a flipped bit')) {
    for (let at = Math.floor(next() * stride(name)); at < bytes.length; at += stride(name)) {
      for (const bit of full ? [0, 1, 2, 3, 4, 5, 6, 7] : [Math.floor(next() * 8)]) {
        const flipped = bytes.slice();
        flipped[at] = (flipped[at] as number) ^ (1 << bit);
        cases.run(name, `bit ${bit} of byte ${at}`, flipped);
      }
    }
  }
  expect(cases.report('a flipped bit in every byte')).toEqual([]);
});
