import { type DType, File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

// One element given as itself, and several as a list: for types whose element is a list too, that is not the same.

const types: Record<string, { dtype: DType; a: unknown; b: unknown }> = {
  number: { dtype: 'float64', a: 1.5, b: -2 },
  bigint: { dtype: 'int64', a: 2n ** 60n, b: -1n },
  'big-endian': { dtype: T.bigEndian('uint16'), a: 258, b: 1 },
  half: { dtype: 'float16', a: 0.5, b: 2 },
  string: { dtype: T.string({ length: 6 }), a: 'äöü', b: '' },
  enum: { dtype: T.enum('uint8', { RED: 0, GREEN: 1 }), a: 1, b: 0 },
  bool: { dtype: T.bool, a: 1, b: 0 },
  opaque: { dtype: T.opaque(2, 'tag'), a: Uint8Array.of(1, 2), b: Uint8Array.of(3, 4) },
  array: { dtype: T.array('int16', [2]), a: Int16Array.of(1, 2), b: Int16Array.of(3, 4) },
  compound: { dtype: T.compound({ x: 'int8', y: T.string({ length: 3 }) }), a: { x: 1, y: 'abc' }, b: { x: 2, y: '' } },
  'compound of arrays': {
    dtype: T.compound({ x: T.array('float32', [2]) }),
    a: { x: Float32Array.of(1, 2) },
    b: { x: Float32Array.of(3, 4) },
  },
};

describe('elements of a log dataset', () => {
  for (const [name, { dtype, a, b }] of Object.entries(types)) {
    test(name, async () => {
      const storage = memoryStorage();
      const file = File.createSync(storage);
      const d = file.createDataset('d', { dtype, shape: [3], fill: b });
      d.write(a, { start: [0], count: [1] });
      d.write([a, b] as unknown[], { start: [1], count: [2] });
      d.write([b] as unknown[], { start: [1], count: [1] });
      d.write([] as unknown[], { start: [1], count: [0] });
      const scalar = file.createDataset('s', { dtype, shape: [] });
      scalar.write(a);
      const check = async (from: File): Promise<void> => {
        expect(Array.from((await from.dataset('d').read()) as ArrayLike<unknown>)).toEqual([a, b, b]);
        expect(Array.from(from.dataset('s').readSync() as ArrayLike<unknown>)).toEqual([a]);
        expect(from.dataset('d').fill).toEqual(name === 'bool' ? false : b);
      };
      await check(file);
      file.closeSync();
      await check(File.openSync(storage));
      // Without a blocking half.
      const blob = await File.open(new Blob([storage.bytes()]));
      expect(Array.from((await blob.dataset('d').read()) as ArrayLike<unknown>)).toEqual([a, b, b]);
    });
  }
});
