import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Batches } from '../../../src/storage/node/file.ts';
import { runs } from '../../seed.ts';

test('batches keep their limits and go on after short writes, until every byte is written once and in order', () => {
  const parts = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 30 });
  fc.assert(
    fc.property(
      parts,
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 1, max: 5 }),
      fc.infiniteStream(fc.nat()),
      (list, mostBytes, mostParts, shorts) => {
        const batches = new Batches(list, 1000, mostBytes, mostParts);
        const written: number[] = [];
        while (batches.left > 0) {
          const batch = batches.next();
          const bytes = batch.flatMap((part) => [...part]);
          expect(batch.length).toBeLessThanOrEqual(mostParts);
          expect(bytes.length).toBeLessThanOrEqual(mostBytes);
          expect(batches.position).toBe(1000 + written.length);
          const count = 1 + ((shorts.next().value as number) % bytes.length);
          written.push(...bytes.slice(0, count));
          batches.advance(count);
        }
        expect(written).toEqual(list.flatMap((part) => [...part]));
      },
    ),
    runs('batches', 1000),
  );
});

test('a buffer detached on the way is an error, not a gap', () => {
  const parts = [new Uint8Array(8), new Uint8Array(8)];
  const batches = new Batches(parts, 0, 8);
  batches.advance((batches.next()[0] as Uint8Array).length);
  structuredClone(parts[1], { transfer: [(parts[1] as Uint8Array<ArrayBuffer>).buffer] });
  expect(() => batches.next()).toThrowError(/detached/);
});

test('a system that writes nothing is an error, not an endless loop', () => {
  const batches = new Batches([new Uint8Array(8)], 0);
  expect(() => batches.advance(0)).toThrowError(/none of 8 bytes/);
});
