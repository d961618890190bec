import { expect, test } from 'vitest';
import { ByteWriter } from '../../../src/hdf5/format/byte-writer.ts';

test('writers that grow in turn do not write into one another', () => {
  const writers = Array.from({ length: 20 }, () => new ByteWriter(1));
  for (let n = 0; n < 300; n++)
    writers.forEach((out, i) => {
      out.u8(i).u32(n);
    });
  writers.forEach((out, i) => {
    const bytes = out.done();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let n = 0; n < 300; n++) {
      expect(view.getUint8(5 * n)).toBe(i);
      expect(view.getUint32(5 * n + 1, true)).toBe(n);
    }
  });
});

test('a writer goes on after its bytes were asked for, and those stay as they are', () => {
  const out = new ByteWriter(4).u16(1);
  const first = out.done();
  const other = new ByteWriter(4).u32(0xffffffff).done();
  out.u32(2);
  expect([...first]).toEqual([1, 0]);
  expect([...other]).toEqual([255, 255, 255, 255]);
  expect([...out.done()]).toEqual([1, 0, 2, 0, 0, 0]);
});

test('a writer that outgrows its slab goes on in the next one, and leaves the bytes of others alone', () => {
  const kept: { bytes: Uint8Array; meant: number[] }[] = [];
  // Small beginnings and odd lengths, so that a slab ends before, after and in the middle of every kind of number.
  for (let i = 0; i < 4000; i++) {
    const out = new ByteWriter(1 + (i % 7));
    const meant: number[] = [];
    for (let n = 0; n < 1 + (i % 90); n++) {
      const value = (i + n) % 250;
      const kind = (i + n) % 4;
      if (kind === 0) out.u8(value);
      else if (kind === 1) out.u16(value);
      else if (kind === 2) out.u32(value);
      else out.u64(value);
      meant.push(value, ...new Array<number>([0, 1, 3, 7][kind] as number).fill(0));
    }
    kept.push({ bytes: out.done(), meant });
  }
  for (const { bytes, meant } of kept) expect([...bytes]).toEqual(meant);
});
