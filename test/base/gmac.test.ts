import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checksummer } from '#platform';
import { gmac } from '../../src/base/checksum.ts';
import { runs } from '../seed.ts';

/** The sum of some pieces, in hexadecimal. */
function sumOf(sum: { update(bytes: Uint8Array): void; digest(): Uint8Array }, pieces: readonly Uint8Array[]): string {
  for (const piece of pieces) sum.update(piece);
  return Buffer.from(sum.digest()).toString('hex');
}

test('the checksum that a page computes is that of OpenSSL, however the bytes are cut', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 6 });
  fc.assert(
    fc.property(pieces, (list) => {
      expect(sumOf(gmac(), list)).toBe(sumOf(checksummer(), list));
    }),
    runs('gmac', 2000),
  );
});

test('so is that of megabytes; prints the rate', () => {
  const megabyte = Uint8Array.from({ length: 2 ** 20 }, (_, i) => i * 7);
  const [ours, theirs] = [gmac(), checksummer()];
  const begun = performance.now();
  for (let i = 0; i < 8; i++) ours.update(megabyte);
  console.log(`gmac without AES: ${(8 / ((performance.now() - begun) / 1000)).toFixed(0)} MiB/s`);
  for (let i = 0; i < 8; i++) theirs.update(megabyte);
  expect(ours.digest()).toEqual(new Uint8Array(theirs.digest()));
});
