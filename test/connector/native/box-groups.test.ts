import { expect, test } from 'vitest';
import { cutBox, groupBoxes, PIECE } from '../../../src/connector/native/box-groups.ts';
import { resolve, select } from '../../../src/space/select.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';

const volume = (count: readonly number[]): number => count.reduce((product, n) => product * n, 1);

test('a box is cut into pieces that cover it once, fit, and end at borders of chunks', () => {
  const next = random(seed('pieces of a box'));
  const integer = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  let pieces = 0;
  for (let round = 0; round < repeats(1000); round++) {
    const rank = integer(1, 3);
    const chunk = next() < 0.5 ? null : Array.from({ length: rank }, () => integer(1, 300));
    const start = Array.from({ length: rank }, () => integer(0, 500));
    const count = Array.from({ length: rank }, () => integer(1, rank === 1 ? 5_000_000 : 900));
    const size = integer(1, 64);
    const covered = new Set<string>();
    let total = 0;
    for (const piece of cutBox(start, count, { size, chunk })) {
      pieces++;
      total += volume(piece.count);
      covered.add(piece.start.join());
      const inChunk = piece.count.every(
        (n, d) => n === 1 || (chunk !== null && sameCell(piece.start[d] as number, n, chunk[d] as number)),
      );
      expect(volume(piece.count) * size <= PIECE || inChunk).toBe(true);
      piece.start.forEach((at, d) => {
        const end = at + (piece.count[d] as number);
        const last = (start[d] as number) + (count[d] as number);
        expect(at).toBeGreaterThanOrEqual(start[d] as number);
        expect(end).toBeLessThanOrEqual(last);
        if (chunk && end !== last) expect(end % (chunk[d] as number)).toBe(0);
      });
    }
    // Inside, with different beginnings and the right volume: no element twice, none left out.
    expect(total).toBe(volume(count));
    expect(covered.size).toBeGreaterThan(0);
  }
  count('pieces of a box', { boxes: repeats(1000), pieces });
});

function sameCell(start: number, count: number, side: number): boolean {
  return Math.floor(start / side) === Math.floor((start + count - 1) / side);
}

test('points that lie in the same chunks are read together, however they are ordered', () => {
  const points = Array.from({ length: 1000 }, (_, i) => [(i * 7919) % 1000, (i * 104_729) % 1000]);
  const blocks = resolve(select.points(points), [1000, 1000]);
  const groups = [...groupBoxes(blocks, { size: 8, chunk: [250, 250] }, false)];
  expect(groups.length).toBeLessThanOrEqual(16);
  const all = groups.flatMap(({ boxes }) => boxes.map(({ i }) => i));
  expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: blocks.length }, (_, i) => i));
});

test('points far from one another are read alone', () => {
  const blocks = resolve(select.points([[0], [2 ** 26], [2 ** 27]]), [2 ** 27 + 1]);
  expect([...groupBoxes(blocks, { size: 8, chunk: null }, false)]).toHaveLength(3);
});

test('where the order counts every box is a call of its own', () => {
  const blocks = resolve(select.points([[5], [7], [1]]), [10]);
  const groups = [...groupBoxes(blocks, { size: 8, chunk: [4] }, true)];
  expect(groups.map(({ boxes }) => boxes)).toEqual([[{ i: 0, at: 0 }], [{ i: 1, at: 1 }], [{ i: 2, at: 2 }]]);
});
