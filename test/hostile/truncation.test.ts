import { expect, test } from 'vitest';
import { full } from '../seed.ts';
import { reseal, type Sealed, sealedParts, superblockAt } from './checksums.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { samples, stride } from './samples.ts';

test('a file cut at every byte is refused', PATIENCE, () => {
  const cases = new Cases();
  for (const { name, bytes } of samples()) {
    for (let size = 0; size < bytes.length; size++) {
      cases.expect(
        cases.run(name, `cut to ${size} bytes`, bytes.subarray(0, size)),
        'FORMAT',
        `${name} cut to ${size} bytes`,
      );
    }
  }
  expect(cases.report('cut at every byte')).toEqual([]);
});

test('a file cut at every byte whose superblock says that this is all', PATIENCE, () => {
  const cases = new Cases();
  for (const { name, bytes } of samples()) {
    const start = superblockAt(bytes);
    const superblock = sealedParts(bytes.slice(0, start + 128)).filter(({ kind }) => kind === 'superblock');
    for (let size = start + 100; size < bytes.length; size += full ? 1 : 3 * stride(name)) {
      cases.run(name, `${size} bytes announced`, announce(bytes.slice(0, size), start, superblock));
    }
  }
  expect(cases.report('cut at every byte and announced so')).toEqual([]);
});

/** Writes the size into the field for the end of the file. */
function announce(bytes: Uint8Array, start: number, superblock: readonly Sealed[]): Uint8Array {
  const view = new DataView(bytes.buffer);
  const version = bytes[start + 8] as number;
  const width = bytes[start + (version < 2 ? 13 : 9)] as number;
  const at = version < 2 ? start + (version === 0 ? 24 : 28) + 2 * width : start + 12 + 2 * width;
  if (width === 8) view.setBigUint64(at, BigInt(bytes.length), true);
  else view.setUint32(at, bytes.length, true);
  return reseal(bytes, superblock);
}
