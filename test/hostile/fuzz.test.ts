import { expect, test } from 'vitest';
import { random, repeats, seed } from '../seed.ts';
import { reseal, sealedParts } from './checksums.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { samples } from './samples.ts';

// Values that break arithmetic, and small ones that pass a first check.
const TELLING = [
  0n,
  1n,
  2n,
  7n,
  8n,
  0x7fn,
  0x80n,
  0xffn,
  0xffffn,
  0x7fffffffn,
  0xfffffff0n,
  0xffffffffn,
  2n ** 52n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 2n,
  2n ** 64n - 1n,
];

test('random changes with all checksums made right again', PATIENCE, () => {
  const cases = new Cases();
  const next = random(seed('fuzzed files'));
  const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)] as V;
  const files = samples().map(({ name, bytes }) => {
    const sealed = sealedParts(bytes);
    // Structure is where the fields are: the checksummed parts, or (in old files) everything that is not a row of zeros.
    const places = [...bytes.keys()].filter(
      (at) => sealed.some(({ from, to }) => at >= from && at < to) || bytes[at] !== 0,
    );
    return { name, bytes, sealed, places };
  });
  for (let i = 0; i < repeats(80_000); i++) {
    const { name, bytes, sealed, places } = pick(files);
    const changed = bytes.slice();
    const done: string[] = [];
    for (let n = 1 + Math.floor(next() ** 3 * 8); n > 0; n--) {
      const at = pick(places);
      const kind = next();
      if (kind < 0.3) changed[at] = Math.floor(next() * 256);
      else if (kind < 0.5) changed[at] = (changed[at] as number) + (next() < 0.5 ? 1 : 255);
      else if (kind < 0.8) put(changed, at, pick([1, 2, 4, 8]), pick(TELLING));
      else if (kind < 0.9) put(changed, at, 8, BigInt(pick(sealed)?.from ?? pick(places)));
      else changed.copyWithin(at, pick(places), pick(places));
      done.push(`byte ${at} (${kind.toFixed(2)})`);
    }
    cases.run(name, `case ${i}: ${done.join(', ')}`, reseal(changed, sealed), i % 4 === 0 ? 'append' : 'read');
  }
  expect(cases.report('random changes, checksums right')).toEqual([]);
});

function put(bytes: Uint8Array, at: number, width: number, value: bigint): void {
  for (let i = 0; i < width && at + i < bytes.length; i++) bytes[at + i] = Number((value >> BigInt(8 * i)) & 255n);
}
