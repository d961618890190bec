import { cpSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { Table } from '../../src/log/format/table-read.ts';
import { count } from '../counts.ts';
import { full, runs } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { folder } from './fixtures.ts';
import { entry, i32, i64, table } from './spelled.ts';

interface Block {
  readonly start: readonly number[];
  readonly count: readonly number[];
}

/** The body that the original writes in merge mode: n, then for each request its starts, then its counts. */
function merged(requests: readonly (readonly Block[])[]): Buffer {
  const blocks = requests.flat();
  const numbers = requests.flatMap((request) => [
    ...request.flatMap(({ start }) => start),
    ...request.flatMap(({ count }) => count),
  ]);
  return Buffer.concat([i32(blocks.length), i64(...numbers)]);
}

const volume = ({ count }: Block): number => count.reduce((a, b) => a * b, 1);

/** Reads an entry of a dataset of such a rank and limits; `elements` of data. */
function read(
  body: Uint8Array,
  rank: number,
  elements: number,
  { flags = 0x01, limits = Array.from({ length: rank }, () => null) as (number | null)[] } = {},
): Block[] {
  const reader = new Table(table([entry(0, flags, 1000, elements * 4, body)]), 0);
  const [raw] = [...reader.entries()];
  if (!raw) throw new Error('there is no entry');
  const starts = new Float64Array(raw.count * rank);
  const counts = new Float64Array(raw.count * rank);
  reader.blocks(raw, { rank, starts, counts, at: 0 }, { elements, limits });
  const vector = (list: Float64Array, i: number): number[] => [...list.subarray(i * rank, (i + 1) * rank)];
  return Array.from({ length: raw.count }, (_, i) => ({ start: vector(starts, i), count: vector(counts, i) }));
}

const box = (start: number[], count: number[]): Block => ({ start, count });

describe('an entry of merge mode', () => {
  test('of one request is read as it is', () => {
    const request = [box([1, 2], [3, 4])];
    expect(read(merged([request]), 2, 12)).toEqual(request);
  });

  test('of requests whose coordinates fit in one way only is read', () => {
    const requests = [[box([0, 1], [1, 3]), box([1, 4], [2, 2])], [box([0, 5], [1, 4])]];
    expect(read(merged(requests), 2, 3 + 4 + 4)).toEqual(requests.flat());
  });

  test('is read the same whether or not it is flagged as encoded or compressed, which it is not', () => {
    const requests = [[box([0, 1], [1, 3])], [box([0, 5], [1, 4])]];
    for (const flags of [0x01, 0x05, 0x09, 0x0d])
      expect(read(merged(requests), 2, 7, { flags }), `flags ${flags}`).toEqual(requests.flat());
  });

  test('that is encoded in truth is told by its length', () => {
    // Dimensions (6, 5): step 5, starts (0,0) and (2,0), counts (1,5) and (2,5).
    const body = Buffer.concat([i32(2), i64(5, 0, 10, 10, 15)]);
    expect(read(body, 2, 15, { flags: 0x05 })).toEqual([box([0, 0], [1, 5]), box([2, 0], [2, 5])]);
  });

  test('that fits in several ways is refused, though one of them is right', () => {
    // 0 3 5 2 1 3 2 1 for 7 elements: starts 0 3 5, counts 2 1 3, then 2 + 1; or starts 0 3 5 2, counts 1 3 2 1.
    const requests = [[box([0], [2]), box([3], [1]), box([5], [3])], [box([2], [1])]];
    expect(() => read(merged(requests), 1, 7)).toThrow(
      expect.objectContaining({
        code: 'FORMAT',
        message: expect.stringMatching(/its 4 blocks can be read in more than/),
      }),
    );
  });

  test('that fits in several ways which come to the same blocks is read', () => {
    // (1,1) (2,2) (2,2) (1,1): as one request of two blocks or as two of one, the blocks are the same.
    const requests = [[box([1, 1], [2, 2])], [box([2, 2], [1, 1])]];
    expect(read(merged(requests), 2, 5)).toEqual(requests.flat());
  });

  test('that fits in no way is refused', () => {
    const requests = [[box([0, 1], [1, 3])], [box([0, 5], [1, 4])]];
    expect(() => read(merged(requests), 2, 8)).toThrow(
      expect.objectContaining({
        code: 'FORMAT',
        message: expect.stringMatching(/no way to read its 2 blocks gives the 8 elements/),
      }),
    );
    expect(() => read(merged(requests), 2, 7.5)).toThrow(/no way/);
    expect(() => read(merged([[box([0, 1], [0, 3])]]), 2, 0)).toThrow(/no way/);
  });

  test('of several ways takes the one that stays inside the largest shape of the dataset', () => {
    const requests = [[box([0], [2]), box([3], [1]), box([5], [3])], [box([2], [1])]];
    // With at most 7 elements the first does not fit (5 + 3), with 6 neither does.
    expect(read(merged(requests), 1, 7, { limits: [7] })).toEqual([
      box([0], [1]),
      box([3], [3]),
      box([5], [2]),
      box([2], [1]),
    ]);
    expect(() => read(merged(requests), 1, 7, { limits: [6] })).toThrow(/more than one way/);
  });

  test('that can be read in one way only may reach beyond it: the original accepts such writes', () => {
    const requests = [[box([0, 1], [1, 3])], [box([0, 5], [1, 4])]];
    expect(read(merged(requests), 2, 7, { limits: [1, 6] })).toEqual(requests.flat());
  });

  test('with negative or enormous numbers is refused', () => {
    for (const bad of [-1, -(2 ** 40)]) {
      expect(() => read(merged([[box([bad], [1])], [box([0], [1])]]), 1, 2)).toThrow(/no way/);
      expect(() => read(merged([[box([0], [bad])], [box([0], [1])]]), 1, 2)).toThrow(/no way/);
    }
  });

  test('whatever it is: what is read is one of the ways, and the only one', () => {
    const vector = (rank: number) => fc.array(fc.nat(3), { minLength: rank, maxLength: rank });
    let [unique, several, none] = [0, 0, 0];
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }).chain((rank) =>
          fc.record({
            rank: fc.constant(rank),
            vectors: fc
              .integer({ min: 1, max: 5 })
              .chain((n) => fc.array(vector(rank), { minLength: 2 * n, maxLength: 2 * n })),
            elements: fc.integer({ min: 1, max: 12 }),
            limit: fc.constantFrom(null, 4, 5),
          }),
        ),
        ({ rank, vectors, elements, limit }) => {
          const limits = Array.from({ length: rank }, () => limit);
          // Every way there is, tried out plainly.
          const [all, inside] = [new Set<string>(), new Set<string>()];
          const tryAll = (at: number, blocks: Block[]): void => {
            if (at === vectors.length) {
              const total = blocks.reduce((sum, block) => sum + volume(block), 0);
              if (total !== elements || !blocks.every(({ count }) => count.every((n) => n >= 1))) return;
              all.add(JSON.stringify(blocks));
              const isInside = ({ start, count }: Block): boolean =>
                start.every((s, d) => limit === null || s + (count[d] as number) <= limit);
              if (blocks.every(isInside)) inside.add(JSON.stringify(blocks));
              return;
            }
            for (let k = 1; at + 2 * k <= vectors.length; k++) {
              const request = Array.from({ length: k }, (_, i) =>
                box(vectors[at + i] as number[], vectors[at + k + i] as number[]),
              );
              tryAll(at + 2 * k, [...blocks, ...request]);
            }
          };
          tryAll(0, []);
          const ways = all.size > 1 && inside.size === 1 ? inside : all;
          const body = Buffer.concat([i32(vectors.length / 2), i64(...vectors.flat())]);
          let found: string;
          try {
            found = JSON.stringify(read(body, rank, elements, { limits }));
          } catch (error) {
            found = /more than one way/.test((error as Error).message) ? 'several' : 'none';
          }
          if (ways.size === 1) unique++;
          else if (ways.size > 1) several++;
          else none++;
          expect(found).toBe(ways.size === 1 ? [...ways][0] : ways.size > 1 ? 'several' : 'none');
        },
      ),
      runs('merged entries', 20_000),
    );
    expect([unique > 0, several > 0 || !full, none > 0]).toEqual([true, true, true]);
    count('merged entries', { 'with one way': unique, 'with several': several, 'with none': none });
  });

  test('costs little, whatever a file claims', () => {
    // All alike: exponentially many ways, all the same blocks.
    const alike = (n: number): Buffer => Buffer.concat([i32(n), i64(...new Array<number>(2 * n).fill(1))]);
    const began = performance.now();
    expect(read(alike(30), 1, 30)).toHaveLength(30);
    // As many sums as possible, and far too many blocks: given up, not tried for hours.
    const many = Buffer.concat([
      i32(20_000),
      i64(...Array.from({ length: 40_000 }, (_, i) => 1 + ((i * 7919) % 1009))),
    ]);
    expect(() => read(many, 1, 10_000_000)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
    expect(() => read(alike(50_000), 1, 50_000)).toThrow(/too many blocks/);
    // A thousand requests of one block each, as a program would write them, are no trouble.
    const rows = Array.from({ length: 1000 }, (_, i) => [box([i, 0], [1, 50])]);
    expect(read(merged(rows), 2, 50_000)).toEqual(rows.flat());
    const spent = performance.now() - began;
    process.stdout.write(`merged entries made to be slow: ${Math.round(spent)} ms\n`);
    expect(spent).toBeLessThan(10_000);
  });
});

test('what we append to a file in merge mode is read as we wrote it, also where merge mode would leave a doubt', () => {
  const path = join(temporaryDirectory(), 'merge.h5');
  cpSync(join(folder, 'merge_flushes_2r.h5'), path);
  const file = File.openSync(path, { mode: 'r+' });
  const expected = file.dataset('b', 'int64').readSync();
  // The doubtful numbers from above: 0 3 5 2 1 3 2 1.
  file.dataset('b').writeMany(BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n, 7n), [0, 3, 5, 2], [1, 3, 2, 1]);
  file.closeSync();
  expected.set([1n], 0);
  expected.set([2n, 3n, 4n], 3);
  expected.set([5n, 6n], 5);
  expected.set([7n], 2);
  for (let i = 0; i < 2; i++) {
    const again = File.openSync(path, { mode: i === 0 ? 'r' : 'r+' });
    expect(again.dataset('b', 'int64').readSync()).toEqual(expected);
    again.closeSync();
  }
});
