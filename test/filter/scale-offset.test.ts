import { expect, test } from 'vitest';
import { decodeScaleOffset } from '../../src/filter/scale-offset.ts';
import { encodeScaleOffset } from '../../src/filter/scale-offset-encode.ts';
import { random, seed } from '../seed.ts';

/** Parameters of integers whose width the filter finds. */
const parameters = (count: number, size: number, fill: number | null): number[] => [
  ...[2, 0, count, 0, size, 0, 0, fill === null ? 0 : 1],
  ...(fill === null ? [] : [fill, 0]),
];

test('numbers of every width come back, eight at a time or fewer, with and without a fill value', () => {
  const next = random(seed('widths'));
  for (const size of [1, 2, 4]) {
    for (let bits = 1; bits <= 8 * size; bits++) {
      for (const count of [1, 7, 8, 1023, 1024, 1025, 5003]) {
        for (const fill of [null, 3]) {
          const least = size === 4 ? 1000 : 0;
          const values = Array.from({ length: count }, () => least + Math.floor(next() * 2 ** bits));
          if (fill !== null) values[count >> 1] = fill;
          const array =
            size === 1 ? Uint8Array.from(values) : size === 2 ? Uint16Array.from(values) : Uint32Array.from(values);
          const plain = new Uint8Array(array.buffer);
          const packed = encodeScaleOffset(plain, parameters(count, size, fill));
          // A buffer that was used before, and of which only a part is wanted.
          const used = new Uint8Array(plain.length + 100).fill(0xaa);
          const decoded = decodeScaleOffset(packed, parameters(count, size, fill), plain.length, (n) =>
            used.subarray(8, 8 + n),
          );
          if (Buffer.compare(decoded, plain) !== 0) expect.fail(`${count} numbers of ${bits} bits in ${size} bytes`);
        }
      }
    }
  }
});
