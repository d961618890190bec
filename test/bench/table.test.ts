import { describe, expect, test } from 'vitest';
import { type Comparison, ratioOf, ratioText, tableLines } from '../../bench/table.ts';

const comparison: Comparison = {
  id: 'small/ordered/write',
  what: 'Write rows',
  results: [
    { program: 'h5log', seconds: 0.12, part: 1 },
    { program: 'h5py contiguous', seconds: 4.92, part: 0.02 },
    { program: 'plain fs', seconds: 0.108, part: 1, cold: 0.25 },
    { program: 'h5py-mpi', seconds: 300, part: 1, unfinished: true, remark: 'collective' },
  ],
};

describe('a table of programs', () => {
  test('has a row for each, with its ratio to ours and what has to be known of it', () => {
    expect(tableLines(comparison)).toEqual([
      'small/ordered/write: Write rows',
      '  h5log                    0.120 s',
      '  h5py contiguous           4.92 s     41x slower  of 2 %',
      '  plain fs                 0.108 s           0.9x  cold 0.250 s',
      '  h5py-mpi         more than 300 s  2,500x slower  collective',
    ]);
  });

  test('is ours divided into theirs', () => {
    expect(comparison.results.map((result) => ratioOf(comparison, result))).toEqual([1, 41, 0.9, 2500].map(near));
  });

  test.each([
    [19_316, '19,300x slower'],
    [41.2, '41x slower'],
    [9.96, '10x slower'],
    [9.94, '9.9x slower'],
    [1.06, '1.1x slower'],
    [1.04, '1.0x'],
    [0.94, '0.9x'],
    [0.1, '0.1x'],
    [0.067, '0.07x'],
    [0.0021, '0.002x'],
  ])('says %d as %s', (ratio, text) => {
    expect(ratioText(ratio)).toBe(text);
  });
});

function near(value: number): unknown {
  return expect.closeTo(value, 6);
}
