import { expect, test } from 'vitest';
import { sameBytes as native } from '#platform';
import { sameBytes as loop } from '../../src/base/buffers.ts';
import { random, repeats, seed } from '../seed.ts';

test.each([
  ['natively', native],
  ['in a page', loop],
])('bytes are the same only if all of them are, compared %s', (_, sameBytes) => {
  const rng = random(seed('same bytes'));
  for (let n = 0; n < repeats(2000); n++) {
    const [at, other, length] = [Math.floor(rng() * 8), Math.floor(rng() * 8), Math.floor(rng() * 40)];
    const a = Uint8Array.from({ length: at + length }, () => 255 * Math.round(rng())).subarray(at);
    const b = new Uint8Array(other + length).subarray(other);
    b.set(a);
    expect(sameBytes(a, b)).toBe(true);
    expect(sameBytes(a, Uint8Array.of(...b, 0))).toBe(false);
    if (length === 0) continue;
    const changed = Math.floor(rng() * length);
    b[changed] = (b[changed] as number) ^ (1 << Math.floor(rng() * 8));
    expect(sameBytes(a, b)).toBe(false);
  }
});
