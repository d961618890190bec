import fc from 'fast-check';
import { expect, test } from 'vitest';
import { copyBox, gather, scatter } from '../../src/space/copy.ts';
import { runs } from '../seed.ts';
import { position, product, range } from './model.ts';

/** Arrays of many shapes, with long rows, whole rows, and single elements; at odd and even bytes. */
const cases = fc
  .tuple(
    fc.array(
      fc.record({
        count: fc.oneof(fc.nat(4), fc.constantFrom(1, 40, 150)),
        before: fc.tuple(fc.nat(2), fc.nat(2)),
        behind: fc.tuple(fc.nat(2), fc.nat(2)),
        tight: fc.boolean(),
      }),
      { maxLength: 5 },
    ),
    fc.constantFrom(1, 2, 3, 4, 8, 16),
    fc.tuple(fc.nat(9), fc.nat(9), fc.nat(9), fc.nat(9)),
  )
  .filter(([dims]) => dims.reduce((n, x) => n * (x.count + 2), 1) < 30_000)
  .map(([dims, elementSize, offsets]) => {
    const side = (s: 0 | 1) => ({
      start: dims.map((x) => (x.tight ? 0 : x.before[s])),
      shape: dims.map((x) => x.count + (x.tight ? 0 : x.before[s] + x.behind[s])),
    });
    return { count: dims.map((x) => x.count), elementSize, offsets, source: side(0), target: side(1) };
  });

function bytes(length: number, offset: number, seed: number): Uint8Array {
  return new Uint8Array(new ArrayBuffer(length + offset), offset).map((_, i) => (i * 31 + seed) % 251);
}

const sizeOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

test('copyBox, gather and scatter move exactly the elements of the box', () => {
  fc.assert(
    fc.property(cases, ({ count, elementSize, offsets, source, target }) => {
      const [a, b, sourceAt, targetAt] = offsets;
      const from = bytes(sourceAt + sizeOf(source.shape) * elementSize, a, 1);
      const to = bytes(targetAt + sizeOf(target.shape) * elementSize, b, 100);
      const cells = product(count.map((n) => range(0, n)));
      const at = (cell: number[], side: typeof source) =>
        position(
          cell.map((x, d) => x + side.start[d]!),
          side.shape,
        ) * elementSize;

      const wanted = to.slice();
      const packed = bytes(sizeOf(count) * elementSize + 7, 0, 9);
      const wantedPacked = packed.slice();
      cells.forEach((cell, i) => {
        const element = from.subarray(sourceAt + at(cell, source), sourceAt + at(cell, source) + elementSize);
        wanted.set(element, targetAt + at(cell, target));
        wantedPacked.set(element, 5 + i * elementSize);
      });

      const whole = to.slice();
      copyBox(
        from,
        sourceAt,
        source.shape,
        source.start,
        whole,
        targetAt,
        target.shape,
        target.start,
        count,
        elementSize,
      );
      expect(Buffer.compare(whole, wanted)).toBe(0);

      // Boxes in flat lists: the numbers of the box begin at index 3.
      const flat = (list: number[]) => Float64Array.from([7, 7, 7, ...list]);
      const end = gather(from, sourceAt, source.shape, flat(source.start), flat(count), elementSize, packed, 5, 3);
      expect(end).toBe(5 + cells.length * elementSize);
      expect(Buffer.compare(packed, wantedPacked)).toBe(0);

      const spread = to.slice();
      expect(scatter(packed, 5, spread, targetAt, target.shape, target.start, count, elementSize)).toBe(end);
      expect(Buffer.compare(spread, wanted)).toBe(0);
    }),
    runs('copies of boxes', 6000),
  );
});

test('every bit pattern of 8-byte elements survives', () => {
  const patterns = BigUint64Array.from(
    { length: 4096 },
    (_, i) => (0x7ff0000000000001n + BigInt(i) * 0x10000000010001n) & 0xffffffffffffffffn,
  );
  const source = new Uint8Array(patterns.buffer);
  const out = new Uint8Array(source.length);
  for (let column = 0; column < 8; column++) gather(source, 0, [512, 8], [0, column], [512, 1], 8, out, column * 4096);
  const back = new Uint8Array(source.length);
  for (let column = 0; column < 8; column++) scatter(out, column * 4096, back, 0, [512, 8], [0, column], [512, 1], 8);
  expect(Buffer.compare(back, source)).toBe(0);
});
