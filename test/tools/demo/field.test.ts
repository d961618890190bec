import { describe, expect, test } from 'vitest';
import { bandOf, elementValue, type Field, gridOf, lastWriters, tileOf } from '../../../src/tools/demo/demo-rank.ts';

describe('the field of the demonstration', () => {
  test('is cut into a grid that is nearly square', () => {
    expect([1, 2, 4, 5, 6, 12, 16].map((ranks) => gridOf(ranks).join('x'))).toEqual([
      '1x1',
      '1x2',
      '2x2',
      '1x5',
      '2x3',
      '3x4',
      '4x4',
    ]);
  });

  // The rule that the check relies on, against ranks that write one after the other into an array.
  test.each([
    [1, 5],
    [4, 9],
    [5, 3],
    [6, 10],
    [12, 4],
    [16, 3],
  ])('%i ranks, %i a side: the last that writes an element is the one that is expected', (ranks, size) => {
    const field: Field = { ranks, size, steps: 3 };
    const written = new Float64Array(size * size);
    let overlaps = 0;
    for (let rank = 0; rank < ranks; rank++) {
      const { rows, columns } = tileOf(field, rank);
      for (let row = rows.start; row < rows.end; row++)
        for (let column = columns.start; column < columns.end; column++) {
          if (written[row * size + column] !== 0) overlaps++;
          written[row * size + column] = elementValue(field, 2, row, column, rank);
        }
    }
    const [down, across] = gridOf(ranks);
    const [lastDown, lastAcross] = [lastWriters(down, size), lastWriters(across, size)];
    const expected = written.map((_, at) => {
      const [row, column] = [Math.floor(at / size), at % size];
      const rank = (lastDown[row] as number) * across + (lastAcross[column] as number);
      return elementValue(field, 2, row, column, rank);
    });
    expect(written).toEqual(expected);
    if (ranks > 1) expect(overlaps).toBeGreaterThan(0);
  });

  test('has bands that cover it once, and values that are all different', () => {
    const bands = Array.from({ length: 7 }, (_, part) => bandOf(part, 7, 23));
    expect(bands.map(({ start }) => start)).toEqual([0, ...bands.slice(0, -1).map(({ end }) => end)]);
    expect(bands.at(-1)?.end).toBe(23);
    const field: Field = { ranks: 3, size: 4, steps: 2 };
    const values = new Set<number>();
    for (let step = 0; step < 2; step++)
      for (let at = 0; at < 16; at++)
        for (let rank = 0; rank < 3; rank++) values.add(elementValue(field, step, at >> 2, at & 3, rank));
    expect(values.size).toBe(2 * 16 * 3);
  });
});
