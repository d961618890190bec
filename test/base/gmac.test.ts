import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { checksummer } from '#platform';
import { runs } from '../seed.ts';

type Sum = { update(bytes: Uint8Array): void; digest(): Uint8Array };

/** The sum of some pieces, in hexadecimal. */
function sumOf(sum: Sum, pieces: readonly Uint8Array[]): string {
  for (const piece of pieces) sum.update(piece);
  return Buffer.from(sum.digest()).toString('hex');
}

/** A policy that forbids a page to compile. */
const REFUSED = {
  Module: class {
    constructor() {
      throw new Error('refused by the content security policy');
    }
  },
};

describe.each([
  ['compiled', (globalThis as { WebAssembly?: unknown }).WebAssembly],
  ['without WebAssembly', undefined],
  ['where a policy forbids WebAssembly', REFUSED],
])('the checksum that is computed without OpenSSL, %s', (name, compiler) => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  /** The function as a module has it that is loaded now. */
  async function load(): Promise<() => Sum> {
    vi.stubGlobal('WebAssembly', compiler);
    vi.resetModules();
    const { gmac } = await import('../../src/base/checksum.ts');
    return gmac;
  }

  test('is that of OpenSSL, however the bytes are cut', async () => {
    const gmac = await load();
    const pieces = fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 6 });
    fc.assert(
      fc.property(pieces, (list) => {
        expect(sumOf(gmac(), list)).toBe(sumOf(checksummer(), list));
      }),
      runs(`gmac, ${name}`, 1000),
    );
  });

  test('does not mix the bytes of two sums that are made at once', async () => {
    const gmac = await load();
    const [first, second] = [gmac(), gmac()];
    const [a, b] = [Uint8Array.from({ length: 50 }, (_, i) => i), new Uint8Array(70).fill(9)];
    for (const [sum, bytes] of [
      [first, a],
      [second, b],
      [first, b],
    ] as const)
      sum.update(bytes);
    expect([sumOf(first, []), sumOf(second, [])]).toEqual([sumOf(checksummer(), [a, b]), sumOf(checksummer(), [b])]);
  });

  test('is that of OpenSSL for megabytes; prints the rate', async () => {
    const gmac = await load();
    const megabyte = Uint8Array.from({ length: 2 ** 20 + 5 }, (_, i) => i * 7);
    const [ours, theirs] = [gmac(), checksummer()];
    const begun = performance.now();
    for (let i = 0; i < 8; i++) ours.update(megabyte.subarray(i));
    console.log(`gmac ${name}: ${(8 / ((performance.now() - begun) / 1000)).toFixed(0)} MiB/s`);
    for (let i = 0; i < 8; i++) theirs.update(megabyte.subarray(i));
    expect(ours.digest()).toEqual(new Uint8Array(theirs.digest()));
  });
});
