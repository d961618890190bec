import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../src/base/checksum.ts';
import { fixtureBytes } from '../hdf5/fixture.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('lookup3, the checksum of HDF5 metadata', () => {
  // From the driver at the end of Bob Jenkins' lookup3.c, for an initial value of 0.
  test.each([
    ['', 0xdeadbeef],
    ['Four score and seven years ago', 0x17770551],
  ])('of "%s" is the one that its author gives', (text, sum) => {
    expect(lookup3(encode(text))).toBe(sum);
  });

  test.each([
    ['latest', 44],
    ['short-addresses', 20],
  ])('of the superblock of %s is the one that libhdf5 stored behind its %i bytes', (name, length) => {
    const bytes = fixtureBytes(name);
    expect(lookup3(bytes, 0, length)).toBe(new DataView(bytes.buffer).getUint32(length, true));
  });

  test('of a part is that of a copy of the part, wherever it lies', () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => (i * 37 + 200) & 255);
    for (let from = 0; from < 16; from++)
      for (let to = from; to <= 64; to++) expect(lookup3(bytes, from, to)).toBe(lookup3(bytes.slice(from, to)));
  });

  test('of long parts, wherever they lie, is that of words put together one by one', () => {
    const bytes = Uint8Array.from({ length: 9000 }, (_, i) => (i * i * 31 + i * 7 + (i >> 3)) & 255);
    const lengths = [60, 61, 64, 65, 72, 73, 76, 77, 300, 4091, 4092, 4093, 4104, 4105, 8184, 8185, 8196, 8990];
    for (const length of lengths)
      for (let from = 0; from < 8; from++)
        expect([length, from, lookup3(bytes, from, from + length)]).toEqual([
          length,
          from,
          wordByWord(bytes.subarray(from, from + length)),
        ]);
  });

  test('changes with every bit and with the length', () => {
    const bytes = new Uint8Array(40);
    const sums = new Set([lookup3(bytes)]);
    for (let bit = 0; bit < 320; bit++) {
      const changed = bytes.slice();
      changed[bit >> 3] = 1 << (bit & 7);
      sums.add(lookup3(changed));
    }
    for (let length = 0; length < 40; length++) sums.add(lookup3(bytes, 0, length));
    expect(sums.size).toBe(1 + 320 + 40);
  });
});

/** hashlittle() of lookup3.c for at least one byte, with no thought of speed: each step is as the one before it, with the words in turn. */
function wordByWord(bytes: Uint8Array): number {
  const rot = (x: number, k: number): number => (x << k) | (x >>> (32 - k));
  const word = (at: number): number => [0, 1, 2, 3].reduce((sum, i) => sum | ((bytes[at + i] ?? 0) << (8 * i)), 0);
  let [x, y, z] = [0, 0, 0].map(() => (0xdeadbeef + bytes.length) | 0) as [number, number, number];
  let at = 0;
  const take = (): void => {
    [x, y, z] = [(x + word(at)) | 0, (y + word(at + 4)) | 0, (z + word(at + 8)) | 0];
    at += 12;
  };
  while (bytes.length - at > 12) {
    take();
    for (const k of [4, 6, 8, 16, 19, 4]) [x, y, z] = [y, (z + y) | 0, ((x - z) ^ rot(z, k)) | 0];
  }
  take();
  [x, y, z] = [z, x, y];
  for (const k of [14, 11, 25, 16, 4, 14, 24]) [x, y, z] = [y, z, ((x ^ z) - rot(z, k)) | 0];
  return z >>> 0;
}
