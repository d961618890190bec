import { constants, deflateSync, inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { inflateZlib, storeZlib } from '../../src/filter/zlib.ts';
import { random, seed } from '../seed.ts';

const next = random(seed('inflate'));

/** Bytes that repeat themselves at all distances and for all lengths that deflate knows. */
function repetitive(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; ) {
    const length = Math.min(size - at, 1 + Math.floor(next() * 300));
    const distance = Math.floor(next() * Math.min(at, 32_768));
    if (distance > 0 && next() < 0.8)
      for (let i = 0; i < length; i++) bytes[at + i] = bytes[at + i - distance] as number;
    else for (let i = 0; i < length; i++) bytes[at + i] = Math.floor(next() * 256);
    at += length;
  }
  return bytes;
}

describe('the inflater for places without node:zlib', () => {
  const samples = [0, 1, 258, 5000, 200_000].map(repetitive);
  const ways = [
    { level: 1 },
    { level: 9 },
    { level: 0 },
    { strategy: constants.Z_FIXED },
    { strategy: constants.Z_HUFFMAN_ONLY },
    { strategy: constants.Z_RLE },
  ];

  test.each(ways)('gives what zlib compressed with %o', (options) => {
    for (const bytes of samples) {
      const inflated = inflateZlib(deflateSync(bytes, options), bytes.length);
      expect(Buffer.compare(inflated, bytes)).toBe(0);
    }
  });

  test('one byte over and over: the longest length there is', () => {
    const bytes = new Uint8Array(100_000).fill(7);
    expect(Buffer.compare(inflateZlib(deflateSync(bytes), bytes.length), bytes)).toBe(0);
  });

  test('refuses what is damaged, cut off, or longer than expected', () => {
    const bytes = repetitive(5000);
    const stream = deflateSync(bytes);
    expect(() => inflateZlib(stream, 4999)).toThrow('more than the 4999 bytes expected');
    for (let end = 0; end < stream.length; end += 1 + Math.floor(next() * 50))
      expect(() => inflateZlib(stream.subarray(0, end), 5000)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
    const other = Uint8Array.from(stream);
    other[other.length - 1] = (other[other.length - 1] as number) ^ 1;
    expect(() => inflateZlib(other, 5000)).toThrow('checksum of compressed data is wrong');
  });

  test('what is stored as it is can be read by zlib and by itself', () => {
    for (const bytes of samples) {
      const stored = storeZlib(bytes);
      expect(Buffer.compare(inflateSync(stored), bytes)).toBe(0);
      expect(Buffer.compare(inflateZlib(stored, bytes.length), bytes)).toBe(0);
    }
  });
});
