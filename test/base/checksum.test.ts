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
