import { describe, expect, test } from 'vitest';
import { checkFletcher32, fletcher32 } from '../../src/filter/fletcher32.ts';
import { decodeLzf } from '../../src/filter/lzf.ts';
import { encodeLzf } from '../../src/filter/lzf-encode.ts';
import { decodeNbit } from '../../src/filter/nbit.ts';
import { shuffle, unshuffle } from '../../src/filter/shuffle.ts';
import { noise, seed } from '../seed.ts';

const bytes = noise(70_000, seed('bytes to filter'));

describe('shuffle', () => {
  test('puts byte b of element i at b * count + i, for every size, length and alignment', () => {
    for (const size of [1, 2, 3, 4, 5, 8, 16]) {
      for (const length of [0, 1, size, 2 * size, 4 * size, 7 * size + 3, 12 * size, 160 * size, 161 * size + 1]) {
        for (const offset of [0, 1, 2, 3]) {
          const data = bytes.subarray(offset, offset + length);
          const count = Math.floor(length / size);
          const expected = data.slice();
          for (let i = 0; i < count; i++)
            for (let b = 0; b < size; b++) expected[b * count + i] = data[i * size + b] as number;
          const shuffled = new Uint8Array(length + 3).subarray(offset % 3, (offset % 3) + length);
          shuffled.set(shuffle(data, size));
          expect(Buffer.compare(shuffled, expected)).toBe(0);
          expect(Buffer.compare(unshuffle(shuffled, size), data)).toBe(0);
        }
      }
    }
  });
});

describe('fletcher32', () => {
  /** As in the definition: big-endian words, both sums modulo 65535, where 0 is 65535 unless nothing was added. */
  function sum(data: Uint8Array): number {
    let [low, high] = [0, 0];
    for (let i = 0; i < data.length; i += 2) {
      low = (low + (data[i] as number) * 256 + (data[i + 1] ?? 0)) % 65_535;
      high = (high + low) % 65_535;
    }
    const none = data.every((byte) => byte === 0);
    return (none ? 0 : high || 65_535) * 65_536 + (none ? 0 : low || 65_535);
  }

  test('is the sum of all words, for every length and alignment', () => {
    for (const length of [0, 1, 2, 3, 479, 480, 481, 5000, 69_999]) {
      for (const data of [bytes.subarray(0, length), bytes.subarray(1, 1 + length), new Uint8Array(length)]) {
        const stored = fletcher32(data);
        expect(new DataView(stored.buffer).getUint32(length, true)).toBe(sum(data));
        expect(Buffer.compare(checkFletcher32(stored), data)).toBe(0);
      }
    }
  });
});

describe('lzf', () => {
  test('gives back what it compressed: noise, runs, repetitions at every distance', () => {
    const samples = [bytes, bytes.subarray(0, 1), new Uint8Array(0), new Uint8Array(50_000).fill(7)];
    for (const period of [1, 2, 3, 4, 5, 31, 300, 8191, 8192, 8193])
      samples.push(Uint8Array.from({ length: 40_000 }, (_, i) => bytes[i % period] as number));
    for (const sample of samples) {
      const stored = encodeLzf(sample);
      expect(stored.length).toBeLessThanOrEqual(sample.length + Math.ceil(sample.length / 32));
      expect(Buffer.compare(decodeLzf(stored, sample.length), sample)).toBe(0);
    }
  });

  test('holds no more than expected', () => {
    const stored = encodeLzf(new Uint8Array(1000));
    expect(() => decodeLzf(stored, 999)).toThrow('LZF data holds more than the 999 bytes expected');
  });
});

describe('nbit', () => {
  test('refuses members behind an array of compounds: libhdf5 loses them', () => {
    const compound = [3, 2, 1, 0, 1, 2, 0, 9, 0];
    const type = [3, 8, 2, 0, 2, 4, ...compound, 4, 1, 4, 0, 17, 0];
    const values = [0, 0, 5, ...type];
    expect(() => decodeNbit(bytes, values, 100)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
