import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortByKeys } from '../../src/space/sort.ts';
import { runs } from '../seed.ts';

test('sorting by keys is what a stable sort with a comparison does', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(5), fc.nat(2 ** 22), fc.integer({ min: 0, max: 2 ** 32 - 1 })), { maxLength: 300 }),
      fc.constantFrom(1, 11, 12, 30, 32),
      (numbers, bits) => {
        const keys = Uint32Array.from(numbers, (x) => x % 2 ** bits);
        const order = Uint32Array.from(keys.keys()).reverse();
        const wanted = [...order].sort((a, b) => keys[a]! - keys[b]!);
        expect([...sortByKeys(keys, order, bits)]).toEqual(wanted);
      },
    ),
    runs('sorts by keys', 500),
  );
});
