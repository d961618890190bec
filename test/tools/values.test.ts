import { expect, test } from 'vitest';
import { type FullSlab, fullSlab, slabCoordinate, slabPieces, slabShape } from '../../src/tools/values.ts';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';

/** The elements of a slab in row-major order, each as its coordinates. */
function elements({ start, stride, count, block }: FullSlab): string[] {
  let all: number[][] = [[]];
  start.forEach((from, d) => {
    const line: number[] = [];
    for (let i = 0; i < (count[d] as number); i++)
      for (let k = 0; k < (block[d] as number); k++) line.push(from + i * (stride[d] as number) + k);
    all = all.flatMap((head) => line.map((at) => [...head, at]));
  });
  return all.map((at) => at.join(','));
}

test('the pieces of a slab, one after the other, are the slab, and none is larger than allowed', () => {
  const rng = random(seed('pieces of slabs'));
  const whole = (most: number): number => Math.floor(rng() * (most + 1));
  const slabs = repeats(3000);
  let pieces = 0;
  for (let n = 0; n < slabs; n++) {
    const parts = Array.from({ length: 1 + whole(2) }, () => {
      const block = 1 + whole(3);
      return { start: whole(3), block, stride: block + whole(2), count: whole(5), more: whole(3) };
    });
    const shape = parts.map(({ start, stride, count: many, block, more }) => start + many * stride + block + more);
    const list = (key: 'start' | 'stride' | 'count' | 'block'): number[] => parts.map((part) => part[key]);
    const slab = fullSlab(
      { start: list('start'), stride: list('stride'), count: list('count'), block: list('block') },
      shape,
      '/d',
    );
    const expected = elements(slab);
    const most = 1 + whole(40);
    const found: string[] = [];
    for (const { where, size } of slabPieces(slab, most)) {
      const inside = elements(where);
      expect(inside.length).toBe(size);
      expect(size).toBeLessThanOrEqual(most);
      found.push(...inside);
      pieces++;
    }
    expect(found).toEqual(expected);
    const sizes = slabShape(slab);
    expect(sizes.reduce((product, size) => product * size, 1)).toBe(expected.length);
    const corner = sizes.map((size, d) => slabCoordinate(slab, d, size - 1));
    if (expected.length > 0) expect(corner.join(',')).toBe(expected.at(-1));
  }
  count('pieces of slabs', { slabs, pieces });
});

test('what is missing in a slab is from the beginning up to the end', () => {
  expect(fullSlab({}, [4, 5], '/d')).toEqual({ start: [0, 0], stride: [1, 1], count: [4, 5], block: [1, 1] });
  expect(fullSlab({ start: [1], block: [2] }, [8], '/d')).toEqual({ start: [1], stride: [2], count: [3], block: [2] });
  expect(fullSlab({ start: [1], stride: [3] }, [8], '/d')).toEqual({ start: [1], stride: [3], count: [3], block: [1] });
  expect(fullSlab({}, [0], '/d').count).toEqual([0]);
  for (const slab of [
    { start: [8] },
    { start: [0, 0] },
    { stride: [0] },
    { block: [0] },
    { count: [9] },
    { start: [1.5] },
    { count: [2], block: [3], stride: [2] },
  ])
    expect(() => fullSlab(slab, [8], '/d')).toThrow(expect.objectContaining({ code: 'SELECTION' }));
});
