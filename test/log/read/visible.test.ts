import { describe, expect, test } from 'vitest';
import { BlockIndex } from '../../../src/log/read/index.ts';
import { covered, visible, visibleElements, visibleParts } from '../../../src/log/read/visible.ts';
import { endOf } from '../../../src/space/box.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';

describe('elements that can be seen', () => {
  test('are those of a plain array in which later blocks replace earlier ones', () => {
    const rng = random(seed('visible elements'));
    const whole = (most: number): number => Math.floor(rng() * (most + 1));
    const arrays = repeats(600);
    let blocks = 0;
    for (let n = 0; n < arrays; n++) {
      const rank = 1 + whole(2);
      const shape = Array.from({ length: rank }, () => 1 + whole(rank === 1 ? 400 : rank === 2 ? 40 : 12));
      const index = new BlockIndex(rank);
      const total = shape.reduce((a, b) => a * b, 1);
      const owner = new Int32Array(total).fill(-1);
      const many = 1 + whole(60);
      for (let i = 0; i < many; i++) {
        index.reserve(1);
        const boxes = shape.map((size) => {
          const start = whole(size);
          // Some reach out of the shape.
          return { start, count: 1 + whole(size - start + 2) };
        });
        boxes.forEach(({ start, count: length }, d) => {
          index.starts[i * rank + d] = start;
          index.counts[i * rank + d] = length;
        });
        index.add(i * 1000, 0);
        for (let e = 0; e < total; e++) {
          let rest = e;
          let inside = true;
          for (let d = rank - 1; d >= 0; d--) {
            const at = rest % (shape[d] as number);
            rest = Math.floor(rest / (shape[d] as number));
            const { start, count: length } = boxes[d] as { start: number; count: number };
            inside &&= at >= start && at < start + length;
          }
          if (inside) owner[e] = i;
        }
      }
      const expected = new Array<number>(many).fill(0);
      for (const i of owner) if (i >= 0) (expected[i] as number)++;
      expect(Array.from(visibleElements(index, shape))).toEqual(expected);
      blocks += many;
    }
    count('visible elements', { arrays, blocks });
  });

  test('are found in time, however often the same elements are written and however many blocks there are', () => {
    const index = new BlockIndex(2);
    const n = 40_000;
    for (let i = 0; i < n; i++) {
      index.reserve(1);
      // Half of them all over one another, half beside one another.
      const k = index.length * 2;
      [index.starts[k], index.starts[k + 1]] = i < n / 2 ? [0, 0] : [100 + (i % 200) * 4, Math.floor(i / 200) * 4];
      [index.counts[k], index.counts[k + 1]] = i < n / 2 ? [50, 50] : [4, 4];
      index.add(i * 100, 0);
    }
    const begun = performance.now();
    const seen = visibleElements(index, [1000, 1000]);
    const seconds = (performance.now() - begun) / 1000;
    expect(seen[n / 2 - 1]).toBe(2500);
    expect(seen.subarray(0, n / 2 - 1).every((elements) => elements === 0)).toBe(true);
    expect(seen.subarray(n / 2).every((elements) => elements === 16)).toBe(true);
    expect(seconds).toBeLessThan(10);
    process.stdout.write(`stat: ${n} blocks in ${seconds.toFixed(2)} s\n`);
  });
});

/** Blocks in order, and for every element of an array of this shape the newest block there, or -1. */
function written(shape: readonly number[], blocks: readonly { start: number[]; count: number[] }[]) {
  const rank = shape.length;
  const index = new BlockIndex(rank);
  const owner = new Int32Array(shape.reduce((a, b) => a * b, 1)).fill(-1);
  blocks.forEach(({ start, count: size }, i) => {
    index.reserve(1);
    index.starts.set(start, i * rank);
    index.counts.set(size, i * rank);
    index.add(i * 1000, 0);
    const last = shape[rank - 1] as number;
    const from = start[rank - 1] as number;
    const end = Math.min(last, from + (size[rank - 1] as number));
    for (const row of elementsOf(shape.slice(0, -1), start, size)) owner.fill(i, row * last + from, row * last + end);
  });
  return { index, owner };
}

/** Row-major positions of the elements of a box, as far as it lies in the array. */
function* elementsOf(
  shape: readonly number[],
  start: ArrayLike<number>,
  size: ArrayLike<number>,
  d = 0,
  at = 0,
): Iterable<number> {
  if (d === shape.length) {
    yield at;
    return;
  }
  const end = Math.min(shape[d] as number, (start[d] as number) + (size[d] as number));
  for (let i = start[d] as number; i < end; i++)
    yield* elementsOf(shape, start, size, d + 1, at * (shape[d] as number) + i);
}

describe('what is visible in a box', () => {
  test('is what a plain array shows: blocks, parts of blocks, and what all of them cover', () => {
    const rng = random(seed('visible blocks'));
    const whole = (most: number): number => Math.floor(rng() * (most + 1));
    const arrays = repeats(400);
    let [boxes, complete] = [0, 0];
    for (let n = 0; n < arrays; n++) {
      const rank = 1 + whole(2);
      const shape = Array.from({ length: rank }, () => 1 + whole(rank === 1 ? 300 : rank === 2 ? 30 : 10));
      // Some arrays have rows only: they are read as runs.
      const isRows = whole(2) === 0;
      const box = () => {
        const start = shape.map((size) => whole(size - 1));
        return {
          start,
          count: shape.map((size, d) => (isRows && d < rank - 1 ? 1 : 1 + whole(size - 1 - (start[d] as number)))),
        };
      };
      const blocks = Array.from({ length: 1 + whole(50) }, box);
      const { index, owner } = written(shape, blocks);
      for (let b = 0; b < 8; b++) {
        const start = Float64Array.from(shape, (size) => whole(size - 1));
        const size = Float64Array.from(shape, (most, d) => 1 + whole(most - 1 - (start[d] as number)));
        const end = endOf(start, size);
        const inside = [...elementsOf(shape, start, size)];
        const seen = visible(index, index.query(start, end), start, size);
        expect([...seen.blocks]).toEqual(
          [...new Set(inside.map((e) => owner[e] as number))].filter((i) => i >= 0).sort((x, y) => x - y),
        );
        expect(seen.complete).toBe(inside.every((e) => owner[e] !== -1));
        const all = covered([index], start, end, true).toBoxes();
        const found: number[] = [];
        for (let i = 0; i < all.length; i++)
          found.push(...elementsOf(shape, all.starts.subarray(i * rank), all.counts.subarray(i * rank)));
        // In row-major order, and each element once.
        expect(found).toEqual(inside.filter((e) => owner[e] !== -1));
        boxes++;
        if (seen.complete) complete++;
      }
      const [low, high] = [new Float64Array(rank), Float64Array.from(shape)];
      for (let block = 0; block < index.length; block++) {
        const parts = visibleParts(index, block, low, high, Infinity)?.parts;
        const found: number[] = [];
        for (let i = 0; i < (parts?.length ?? 0); i++)
          found.push(
            ...elementsOf(shape, parts?.starts.subarray(i * rank) ?? [], parts?.counts.subarray(i * rank) ?? []),
          );
        const expected = [...owner.keys()].filter((e) => owner[e] === block);
        expect(found.sort((x, y) => x - y)).toEqual(expected);
      }
    }
    count('visible blocks', { arrays, boxes, complete });
  });

  test('is found in large boxes with many overlapping blocks', () => {
    const shape = [3000, 3000];
    const rng = random(seed('large boxes'));
    const start = () => [Math.floor(rng() * 2400), Math.floor(rng() * 2400)];
    const blocks = Array.from({ length: 60 }, () => ({ start: start(), count: [600, 600] }));
    const { index, owner } = written(shape, blocks);
    const [low, high] = [new Float64Array(2), Float64Array.from(shape)];
    const seen = visible(index, index.query(low, high), low, high);
    expect([...seen.blocks]).toEqual([...new Set(owner)].filter((i) => i >= 0).sort((a, b) => a - b));
    expect(seen.complete).toBe(!owner.includes(-1));
  });

  test('of a block under too many newer ones is not worked out', () => {
    const { index } = written(
      [10],
      Array.from({ length: 5 }, () => ({ start: [0], count: [5] })),
    );
    expect(visibleParts(index, 0, Float64Array.of(0), Float64Array.of(10), 3)).toBeNull();
    expect(visibleParts(index, 0, Float64Array.of(0), Float64Array.of(10), 4)).toMatchObject({
      newer: 4,
      parts: { length: 0 },
    });
  });
});
