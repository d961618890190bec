import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { parseSelection, type StoredSelection } from '../../../src/hdf5/messages/selection.ts';
import { Mapped, orderedIn } from '../../../src/log/read/mapped.ts';
import { BoxList } from '../../../src/space/box-list.ts';
import { runs } from '../../seed.ts';

/** Numbers of a selection in a file, one after the other, of the widths given. */
function bytesOf(...fields: (readonly [value: number, width: number])[]): Uint8Array {
  const bytes: number[] = [];
  for (const [value, width] of fields) {
    let rest = value === Infinity ? 2n ** BigInt(8 * width) - 1n : BigInt(value);
    for (let i = 0; i < width; i++, rest >>= 8n) bytes.push(Number(rest & 255n));
  }
  return Uint8Array.from(bytes);
}

type Slab = { readonly start: number[]; readonly step: number[]; readonly block: number[]; readonly count: number[] };

/** A regular slab as each version stores it. */
function slabBytes({ start, step, block, count }: Slab, version: number, width: number): Uint8Array {
  const rank = start.length;
  const numbers = start.flatMap((x, d) => [x, step[d] as number, count[d] as number, block[d] as number]);
  if (version === 2) return bytesOf([2, 4], [2, 4], [1, 1], [0, 4], [rank, 4], ...numbers.map((x) => [x, 8] as const));
  if (version === 3) {
    return bytesOf([2, 4], [3, 4], [1, 1], [width, 1], [rank, 4], ...numbers.map((x) => [x, width] as const));
  }
  const corners = product(count).map((cell) => cell.map((i, d) => (start[d] as number) + i * (step[d] as number)));
  const blocks = corners.flatMap((low) => [...low, ...low.map((x, d) => x + (block[d] as number) - 1)]);
  return bytesOf([2, 4], [1, 4], [0, 8], [rank, 4], [corners.length, 4], ...blocks.map((x) => [x, 4] as const));
}

/** Every combination, the last dimension fastest. */
function product(sizes: readonly number[]): number[][] {
  return sizes.reduce<number[][]>(
    (list, n) => list.flatMap((head) => Array.from({ length: n }, (_, i) => [...head, i])),
    [[]],
  );
}

/** The elements of a slab in row-major order. */
function elementsOf({ start, step, block, count }: Slab): number[][] {
  const along = start.map((from, d) =>
    product([count[d] as number, block[d] as number]).map(([i = 0, k = 0]) => from + i * (step[d] as number) + k),
  );
  return product(along.map((list) => list.length)).map((at) => at.map((i, d) => along[d]?.[i] as number));
}

const slab = (rank: number, most: number): fc.Arbitrary<Slab> =>
  fc
    .array(
      fc.record({
        start: fc.nat(4),
        block: fc.integer({ min: 1, max: most }),
        gap: fc.nat(3),
        count: fc.integer({ min: 1, max: most }),
      }),
      { minLength: rank, maxLength: rank },
    )
    .map((dims) => ({
      start: dims.map(({ start }) => start),
      block: dims.map(({ block }) => block),
      step: dims.map(({ block, gap }) => block + gap),
      count: dims.map(({ count }) => count),
    }));

const sizeOf = ({ block, count }: Slab): number => block.reduce((n, b, d) => n * b * (count[d] as number), 1);

/** A slab of any rank with as many elements: factors of the number, divided among dimensions and between blocks and counts. */
const alike = (of: Slab): fc.Arbitrary<Slab> =>
  fc.integer({ min: 1, max: 3 }).chain((rank) =>
    fc.array(fc.nat(2 * rank - 1), { minLength: 12, maxLength: 12 }).chain((places) => {
      const parts = new Array(2 * rank).fill(1);
      let rest = sizeOf(of);
      let i = 0;
      for (let p = 2; rest > 1; p++) {
        for (; rest % p === 0; rest /= p) parts[places[i++ % places.length] as number] *= p;
      }
      return fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { minLength: rank, maxLength: rank }).map((more) => ({
        start: more.map(([start]) => start),
        block: more.map((_, d) => parts[2 * d]),
        step: more.map(([, gap], d) => parts[2 * d] + gap),
        count: more.map((_, d) => parts[2 * d + 1]),
      }));
    }),
  );

/** Elements of boxes one after the other, each row-major. */
function listed(boxes: BoxList): number[][] {
  const { starts, counts, rank, length } = boxes.toBoxes();
  return Array.from({ length }, (_, i) =>
    product([...counts.subarray(i * rank, (i + 1) * rank)]).map((at) =>
      at.map((x, d) => x + (starts[i * rank + d] as number)),
    ),
  ).flat();
}

const stored = (bytes: Uint8Array): StoredSelection => parseSelection(new Cursor(bytes, 0));
const encoding = fc.constantFrom([1, 4], [2, 8], [3, 2], [3, 4], [3, 8]) as fc.Arbitrary<[number, number]>;

test('pairs the elements of two selections in their order, whatever part is asked for', () => {
  const cases = fc.integer({ min: 1, max: 3 }).chain((rank) =>
    slab(rank, 3).chain((target) =>
      fc.record({
        target: fc.constant(target),
        source: alike(target),
        encodings: fc.tuple(encoding, encoding),
        low: fc.array(fc.nat(12), { minLength: rank, maxLength: rank }),
        size: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: rank, maxLength: rank }),
      }),
    ),
  );
  fc.assert(
    fc.property(cases, ({ target, source, encodings: [one, other], low, size }) => {
      const mapped = new Mapped(
        orderedIn(stored(slabBytes(target, ...one)), []),
        orderedIn(stored(slabBytes(source, ...other)), []),
      );
      const high = low.map((x, d) => x + (size[d] as number));
      const pairs = { targets: new BoxList(low.length), sources: new BoxList(source.start.length) };
      const count = mapped.collect(Float64Array.from(low), Float64Array.from(high), pairs);
      const [targets, sources] = [listed(pairs.targets), listed(pairs.sources)];
      expect(sources).toHaveLength(count);
      const found = new Map(targets.map((at, i) => [String(at), String(sources[i])]));
      const all = elementsOf(source);
      const expected = elementsOf(target).flatMap((at, i) =>
        at.every((x, d) => x >= (low[d] as number) && x < (high[d] as number)) ? [[String(at), String(all[i])]] : [],
      );
      expect(targets).toHaveLength(expected.length);
      expect(found).toEqual(new Map(expected as [string, string][]));
      if (mapped.spread === Infinity) return;
      const window = mapped.window(Float64Array.from(low), Float64Array.from(high));
      expect(window === null).toBe(expected.length === 0);
      if (!window) return;
      const places = product(window.targets.map((list) => list.length));
      const inWindow = places.map((at) => {
        const from = [...window.lo];
        for (const [d, s] of window.along.entries())
          if (s >= 0) from[s] = window.sources[d]?.[at[d] as number] as number;
        return [String(at.map((i, d) => window.targets[d]?.[i])), String(from)];
      });
      expect(new Map(inWindow as [string, string][])).toEqual(found);
      for (const [d, s] of window.along.entries()) {
        const coordinates = window.sources[d] as Float64Array;
        if (s >= 0) expect([window.lo[s], window.hi[s]]).toEqual([coordinates[0], (coordinates.at(-1) as number) + 1]);
      }
    }),
    runs('mapped selections', 20_000),
  );
});

test('pairs irregular selections and points in their order', () => {
  // Two blocks side by side and one below: rows alternate between the first two.
  const irregular = stored(
    bytesOf(
      [2, 4],
      [1, 4],
      [0, 8],
      [2, 4],
      [3, 4],
      ...[0, 0, 1, 1, 0, 4, 1, 4, 3, 2, 3, 2].map((x) => [x, 4] as const),
    ),
  );
  expect(irregular.kind).toBe('boxes');
  for (const [version, width] of [
    [1, 4],
    [2, 2],
    [2, 4],
    [2, 8],
  ] as const) {
    const head = version === 1 ? [[0, 8] as const] : [[width, 1] as const];
    const at = [6, 5, 4, 3, 2, 1, 0].map((x) => [x, width] as const);
    const points = stored(bytesOf([1, 4], [version, 4], ...head, [1, 4], [7, width], ...at));
    const mapped = new Mapped(orderedIn(points, [7]), orderedIn(irregular, []));
    const pairs = { targets: new BoxList(1), sources: new BoxList(2) };
    expect(mapped.collect(Float64Array.of(2), Float64Array.of(7), pairs)).toBe(5);
    expect(listed(pairs.targets)).toEqual([[6], [5], [4], [3], [2]]);
    expect(listed(pairs.sources)).toEqual([
      [0, 0],
      [0, 1],
      [0, 4],
      [1, 0],
      [1, 1],
    ]);
  }
});

test('refuses selections that are none', () => {
  const wrong = [
    bytesOf([4, 4], [1, 4]),
    bytesOf([2, 4], [4, 4]),
    bytesOf([2, 4], [3, 4], [1, 1], [3, 1], [1, 4]),
    bytesOf([2, 4], [1, 4], [0, 8], [33, 4], [0, 4]),
    bytesOf([2, 4], [1, 4], [0, 8], [1, 4], [0xffffffff, 4], [0, 4], [0, 4]),
    bytesOf([2, 4], [1, 4], [0, 8], [1, 4], [1, 4], [5, 4], [4, 4]),
    bytesOf([1, 4], [2, 4], [8, 1], [1, 4], [Number.MAX_SAFE_INTEGER, 8], [0, 8]),
    slabBytes({ start: [0], step: [1], block: [2], count: [2] }, 2, 8),
    slabBytes({ start: [0], step: [0], block: [1], count: [2] }, 3, 4),
    slabBytes({ start: [0, 0], step: [1, 1], block: [1, 1], count: [Infinity, Infinity] }, 2, 8),
    slabBytes({ start: [2 ** 52], step: [2 ** 52], block: [1], count: [2 ** 52] }, 2, 8),
  ];
  for (const bytes of wrong) expect(() => stored(bytes)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
});
