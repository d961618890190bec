import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isH5LogError } from '../../src/base/errors.ts';
import { type Blocks, dataLength, resolve, type Selection, select, type Where } from '../../src/space/select.ts';
import { runs } from '../seed.ts';
import { applied, covered, leaves, type Modelled, pointLists, range, shapes, slabs, trees } from './model.ts';

const inShape = (of: (shape: readonly number[]) => fc.Arbitrary<Modelled>) =>
  shapes().chain((shape) => fc.record({ shape: fc.constant(shape), modelled: of(shape) }));

function pairs(blocks: Blocks): [number[], number[]][] {
  return range(0, blocks.length).map((i) => {
    const cut = (list: Float64Array) => [...list.subarray(i * blocks.rank, (i + 1) * blocks.rank)];
    return [cut(blocks.starts), cut(blocks.counts)];
  });
}

function refused(where: Where, shape: readonly number[], ...words: (string | RegExp)[]): void {
  let thrown: unknown;
  try {
    resolve(where, shape);
  } catch (error) {
    thrown = error;
  }
  expect(isH5LogError(thrown, 'SELECTION'), String(thrown)).toBe(true);
  for (const word of words) expect((thrown as Error).message).toMatch(word);
}

describe('every selection becomes blocks in row-major order', () => {
  test('slabs', () => {
    fc.assert(
      fc.property(inShape(slabs), ({ shape, modelled }) => {
        const blocks = resolve(modelled.where, shape);
        expect(covered(blocks, shape)).toEqual(modelled.positions);
        expect(blocks.size).toBe(modelled.positions.length);
        expect([blocks.rank, blocks.itemOf]).toEqual([shape.length, null]);
      }),
      runs('slabs', 4000),
    );
  });

  test('trees of set operations', () => {
    fc.assert(
      fc.property(
        inShape((shape) => fc.tuple(trees(shape), leaves(shape)).map(([a, b]) => applied('or', a, b))),
        ({ shape, modelled }) => {
          const blocks = resolve(modelled.where, shape);
          expect(covered(blocks, shape)).toEqual(modelled.positions);
          expect(blocks.itemOf).toBe(null);
          const { size } = modelled.where as Selection;
          expect(Number.isNaN(size) || size === modelled.positions.length).toBe(true);
        },
      ),
      runs('trees of selections', 15_000),
    );
  });

  test('a tree gives the same after its parts were resolved on their own', () => {
    fc.assert(
      fc.property(
        shapes(3, 8).chain((shape) => fc.record({ shape: fc.constant(shape), a: trees(shape), b: trees(shape) })),
        ({ shape, a, b }) => {
          for (const part of [a, b]) resolve(part.where, shape);
          for (const operation of ['or', 'and', 'xor', 'minus'] as const) {
            const { where, positions } = applied(operation, a, b);
            expect((where as Selection).size).toSatisfy((n: number) => Number.isNaN(n) || n === positions.length);
            expect(covered(resolve(where, shape), shape)).toEqual(positions);
          }
        },
      ),
      runs('resolved parts of a tree', 4000),
    );
  });

  test('lists of points keep the order of the caller', () => {
    fc.assert(
      fc.property(inShape(pointLists), ({ shape, modelled }) => {
        const blocks = resolve(modelled.where, shape);
        const elements = covered(blocks, shape);
        expect(elements).toEqual([...new Set(modelled.positions)].sort((a, b) => a - b));
        expect(dataLength(blocks)).toBe(modelled.positions.length);
        const place = blocks.elementOf ?? Float64Array.from(range(0, blocks.size));
        const order = blocks.itemOf ?? Float64Array.from(range(0, blocks.size));
        expect(Array.from(place, (at) => elements[at])).toEqual(modelled.positions);
        expect(Array.from(order)).toEqual(elements.map((x) => modelled.positions.lastIndexOf(x)));
      }),
      runs('lists of points', 5000),
    );
  });

  test('blocks in flat lists are those of coordinate lists, also where all have the same counts', () => {
    const starts = [4, 0, 0, 6, 2, 1];
    const counts = [1, 2, 2, 3, 3, 1];
    const nested = select.blocks(
      [
        [4, 0],
        [0, 6],
        [2, 1],
      ],
      [
        [1, 2],
        [2, 3],
        [3, 1],
      ],
    );
    const shape = [8, 9];
    const flat = [
      select.blocks(starts, counts, 2),
      select.blocks(Int32Array.from(starts), Float64Array.from(counts), 2),
    ];
    for (const found of flat) expect(resolve(found, shape)).toEqual(resolve(nested, shape));
    const alike = select.blocks(
      [
        [4, 0],
        [0, 6],
      ],
      [
        [2, 3],
        [2, 3],
      ],
    );
    expect(resolve(select.blocks([4, 0, 0, 6], [2, 3], 2), shape)).toEqual(resolve(alike, shape));
    expect(select.blocks([], [], 2).size).toBe(0);
    const [box] = select.blocks(Float64Array.of(-0, 1), Float64Array.of(1, 1), 2).boxes();
    expect(box).toEqual({ start: [0, 1], count: [1, 1] });
    const some = select.blocks(Float64Array.of(1, 2, 3, 3, 5, 6), Float64Array.of(1, 2, 1, 0, 2, 1), 2);
    expect([...some.boxes()].map(({ start, count }) => [start, count])).toEqual([
      [
        [1, 2],
        [1, 2],
      ],
      [
        [5, 6],
        [2, 1],
      ],
    ]);
    expect(starts).toEqual([4, 0, 0, 6, 2, 1]);
  });

  test('flat lists of blocks that are not whole, or of another length, are refused', () => {
    expect(() => select.blocks([1, 2, 3], [1, 1, 1], 2)).toThrow('3 numbers are no whole starts of 2 dimensions');
    expect(() => select.blocks([1, 2], [1], 2)).toThrow('1 numbers are no whole counts of 2 dimensions');
    expect(() => select.blocks([1, 2], [1, 1, 1, 1], 2)).toThrow('as many starts as counts, not 2 starts and 4 counts');
    expect(() => select.blocks([1, 2], [1, 1], 0)).toThrow('the rank of a flat list of starts is 1 to 32, not 0');
    for (const wrong of [-2, 0.5, Number.NaN, 2 ** 53])
      expect(() => select.blocks(Float64Array.of(1, wrong), [1, 1], 2)).toThrow(`dimension 1 of starts [1, ${wrong}]`);
    expect(() => select.blocks([0, 1, 2 ** 53 - 1, 4], [1, 1], 2)).toThrow('block 1 ends beyond 2^53-1 in dimension 0');
    expect(() => select.blocks([1, -2], [1, 1], 2)).toThrow('dimension 1 of starts [1, -2] is -2');
  });

  test('many shuffled points with repetitions, in a dataset of nearly 2^53 elements', () => {
    const shape = [2 ** 20, 2 ** 16, 2 ** 16];
    const at = new Float64Array(30_000);
    for (let i = 0, x = 1; i < at.length; i++) {
      x = (x * 48271) % 2147483647;
      at[i] = x % (i % 3 === 0 ? 2 ** 20 : 40);
    }
    at.set(at.subarray(0, 300), 3000);
    const blocks = resolve(select.points(at, 3), shape);
    const key = (i: number) => at[i * 3]! * 2 ** 32 + at[i * 3 + 1]! * 2 ** 16 + at[i * 3 + 2]!;
    const last = new Map(range(0, 10_000).map((i) => [key(i), i]));
    expect(blocks.size).toBe(last.size);
    expect(Array.from(blocks.itemOf!)).toEqual([...last.keys()].sort((a, b) => a - b).map((k) => last.get(k)));
    expect(range(0, 10_000).every((i) => key(blocks.itemOf![blocks.elementOf![i]!]!) === key(i))).toBe(true);
  });
});

describe('neighbours are joined', () => {
  const cells = [0, 1, 2, 3].flatMap((y) => [0, 1, 2].map((x) => [y, x]));
  const one = [
    [
      [0, 0],
      [4, 3],
    ],
  ];

  test('a grid of 1x1 cells is one block, however it is given', () => {
    const ones = cells.map(() => [1, 1]);
    expect(pairs(resolve(select.blocks(cells, ones), [9, 9]))).toEqual(one);
    expect(pairs(resolve(select.blocks([...cells].reverse(), ones), [9, 9]))).toEqual(one);
    expect(pairs(resolve(select.points([...cells].reverse()), [9, 9]))).toEqual(one);
    expect(pairs(resolve({ start: [0, 0], count: [4, 3] }, [9, 9]))).toEqual(one);
    expect(pairs(resolve({ count: [2, 1], stride: [2, 3], block: [2, 3] }, [9, 9]))).toEqual(one);
    expect(
      pairs(
        resolve(
          cells.reduce((all, at) => all.xor(select.box(at, [1, 1])), select.none()),
          [9, 9],
        ),
      ),
    ).toEqual(one);
  });

  test('rows one below the other are one block', () => {
    const rows = range(0, 50).map((y) => [y, 2]);
    expect(
      pairs(
        resolve(
          select.blocks(
            rows,
            rows.map(() => [1, 5]),
          ),
          [50, 7],
        ),
      ),
    ).toEqual([
      [
        [0, 2],
        [50, 5],
      ],
    ]);
  });

  test('a cube of single elements is one block', () => {
    const corner = range(0, 64).map((i) => [i >> 4, (i >> 2) & 3, i & 3]);
    expect(pairs(resolve(select.points(corner), [8, 8, 8]))).toEqual([
      [
        [0, 0, 0],
        [4, 4, 4],
      ],
    ]);
  });

  test('blocks are only cut where they interleave', () => {
    const tall = select.box([0, 0], [10, 4]);
    expect(pairs(resolve(tall.or({ start: [9, 6], count: [1, 2] }), [10, 9]))).toEqual([
      [
        [0, 0],
        [10, 4],
      ],
      [
        [9, 6],
        [1, 2],
      ],
    ]);
    expect(resolve(tall.or({ start: [8, 6], count: [2, 2] }), [10, 9]).length).toBe(4);
  });

  test('a row is not joined to a taller block beside it', () => {
    const blocks = resolve(
      select.blocks(
        [
          [0, 0],
          [0, 5],
        ],
        [
          [1, 5],
          [2, 5],
        ],
      ),
      [2, 10],
    );
    expect(pairs(blocks)).toEqual([
      [
        [0, 0],
        [1, 5],
      ],
      [
        [0, 5],
        [2, 5],
      ],
    ]);
  });

  test('a box of 10^6 x 10^6 elements is not cut into rows', () => {
    const blocks = resolve(select.box([0, 0], [1e6, 1e6]).minus({ start: [10, 10], count: [2, 5] }), [1e6, 1e6]);
    expect(pairs(blocks)).toEqual([
      [
        [0, 0],
        [10, 1e6],
      ],
      [
        [10, 0],
        [1, 10],
      ],
      [
        [10, 15],
        [1, 1e6 - 15],
      ],
      [
        [11, 0],
        [1, 10],
      ],
      [
        [11, 15],
        [1, 1e6 - 15],
      ],
      [
        [12, 0],
        [1e6 - 12, 1e6],
      ],
    ]);
  });

  test('the strided example of format-original.md section 4 is 6 blocks in row-major order of their starts', () => {
    const blocks = resolve({ start: [0, 0], stride: [2, 4], count: [3, 2], block: [1, 2] }, [6, 8]);
    expect(pairs(blocks)).toEqual(
      [0, 2, 4].flatMap((y) =>
        [0, 4].map((x) => [
          [y, x],
          [1, 2],
        ]),
      ),
    );
  });
});

describe('empty and scalar selections', () => {
  test('nothing selected gives no blocks, wherever it is', () => {
    const empty: Where[] = [
      select.none(),
      select.box([0, 9], [0, 9]),
      { count: [0, 0] },
      { block: [0, 1] },
      select.points([]),
      select.blocks([], []),
    ];
    for (const where of [
      ...empty,
      select.all().minus(select.all()),
      select.none().or(select.none()),
      select.none().and({}),
    ]) {
      expect(resolve(where, [4, 4])).toMatchObject({ rank: 2, length: 0, size: 0 });
    }
    expect(resolve(undefined, [3, 0])).toMatchObject({ rank: 2, length: 0, size: 0 });
  });

  test('a scalar has one block of no dimensions', () => {
    const whole = [
      undefined,
      {},
      select.all(),
      select.box([], []),
      select.points([[]]),
      select.all().and(select.points([[], []])),
    ];
    for (const where of whole) expect(resolve(where, [])).toMatchObject({ rank: 0, length: 1, size: 1 });
    expect(resolve(select.all().xor(select.box([], [])), [])).toMatchObject({ rank: 0, length: 0, size: 0 });
    expect(dataLength(resolve(select.points([[], [], []]), []))).toBe(3);
  });

  test('rank and size say what is known without a dataset', () => {
    expect([select.all().rank, select.all().size]).toEqual([-1, NaN]);
    expect([select.none().rank, select.none().size]).toEqual([-1, 0]);
    expect(select.box([1, 1], [2, 3])).toMatchObject({ rank: 2, size: 6 });
    expect(select.hyperslab({ start: [1, 1] })).toMatchObject({ rank: 2, size: NaN });
    expect(select.points([[1], [1]])).toMatchObject({ rank: 1, size: 2 });
    expect(select.points([[1], [1]]).or(select.none())).toMatchObject({ rank: 1, size: 1 });
    expect(select.blocks([[0], [1]], [[2], [2]])).toMatchObject({ rank: 1, size: 3 });
  });
});

describe('what is outside is refused', () => {
  test('the message names the dimension, the range and the shape', () => {
    const words = ['dimension 1', '3 to 5', '0 to 4', /\[4, 5\]/];
    refused({ start: [0, 3], count: [1, 3] }, [4, 5], ...words);
    refused(select.box([0, 3], [1, 3]), [4, 5], ...words);
    refused(select.blocks([[0, 3]], [[1, 3]]), [4, 5], ...words);
    refused(
      select.points([
        [1, 3],
        [0, 5],
      ]),
      [4, 5],
      ...words,
    );
    refused({ start: [0, 3], count: [1, 2], stride: [1, 2] }, [4, 5], ...words);
    refused(select.none().or({ start: [0, 3], count: [1, 3] }), [4, 5], ...words);
    refused(select.hyperslab({ start: [0, 3] }).or({ start: [0, 3], count: [1, 3] }), [4, 5], ...words);
    refused({ start: [0, 6] }, [4, 5], 'dimension 1', /\[4, 5\]/);
  });

  test('only what is left of a set counts', () => {
    expect(resolve(select.box([2], [100]).and(select.all()), [5])).toMatchObject({ length: 1, size: 3 });
    expect(resolve(select.box([2], [3]).minus({ start: [0], count: [100] }), [5])).toMatchObject({ length: 0 });
  });

  test.each([
    ['NaN', NaN],
    ['negative', -1],
    ['fractional', 0.5],
    ['infinite', Infinity],
    ['too large', 2 ** 53],
    ['a string', '1'],
    ['a bigint', 1n],
    ['missing', undefined],
  ])('%s coordinates', (_, bad) => {
    const list = [0, bad] as number[];
    for (const part of ['start', 'count', 'stride', 'block'])
      refused({ count: [1, 1], [part]: list }, [4, 4], 'dimension 1', part);
    const code = { code: 'SELECTION' };
    expect(() => select.box(list, [1, 1])).toThrow(expect.objectContaining(code));
    expect(() => select.points([list])).toThrow(expect.objectContaining(code));
    expect(() => select.points(list, 2)).toThrow(expect.objectContaining(code));
    expect(() => select.blocks([list], [[1, 1]])).toThrow(expect.objectContaining(code));
  });

  test('the wrong number of dimensions', () => {
    refused({ start: [0], count: [1] }, [4, 4], '1 dimensions', /\[4, 4\]/);
    refused({ start: [0, 0, 0], count: [1, 1, 1] }, [4, 4], '3 dimensions');
    refused({ start: [0, 0], count: [1] }, [4, 4], 'count');
    refused(select.box([0], [1]), [4, 4]);
    refused(select.points([[0]]), [4, 4]);
    refused({ start: [0] }, []);
    expect(() => select.box([0], [1]).or(select.box([0, 0], [1, 1]))).toThrow(/1 dimensions and one of 2/);
    expect(() => select.points([[0], [0, 0]])).toThrow(/point 1/);
    expect(() => select.points([0, 0, 0], 2)).toThrow(/3 numbers/);
    expect(() => select.blocks([[0]], [])).toThrow(/1 starts and 0 counts/);
    expect(() => select.box(new Array(33).fill(0), new Array(33).fill(1))).toThrow(/32/);
  });

  test('things that are no selection', () => {
    for (const bad of [null, 3, 'all', [0, 0], new Float64Array(2), { start: 0, count: 1 }]) {
      refused(bad as unknown as Where, [4, 4]);
    }
    refused({ count: [1], stride: [0] }, [4], 'stride');
  });

  test('slabs with misspelt parts, which are unknown options', () => {
    for (const bad of [{ starts: [0, 0] }, { start: [0, 0], counts: [1, 1] }]) {
      let thrown: unknown;
      try {
        resolve(bad as Where, [4, 4]);
      } catch (error) {
        thrown = error;
      }
      expect(isH5LogError(thrown, 'OPTION'), String(thrown)).toBe(true);
    }
  });

  test('what would fall apart into far too many blocks', () => {
    refused({ stride: [1, 2] }, [1e6, 1e6], 'blocks');
    refused(select.box([0, 0], [1e9, 1]).or(select.box([0, 2], [1e9, 1])), [1e9, 9], 'blocks');
    // Known only after it is narrowed down: nothing is taken apart that will not be needed.
    expect(resolve(select.hyperslab({ stride: [2, 2] }).and({ start: [6, 5], count: [1, 5] }), [1e6, 1e6]).size).toBe(
      2,
    );
  });
});

describe('a selection is worked out once', () => {
  test('the same blocks again for the same shape, and for every shape if none is needed', () => {
    for (const where of [
      select.all(),
      select.none(),
      select.hyperslab({ start: [1, 1] }).or({ start: [0, 0], count: [1, 1] }),
    ]) {
      const blocks = resolve(where, [4, 4]);
      expect(resolve(where, [4, 4])).toBe(blocks);
      expect(resolve(where, [5, 4])).not.toBe(blocks);
    }
    for (const where of [
      select.box([1, 1], [2, 2]),
      select.points([
        [3, 3],
        [0, 0],
      ]),
      select.box([1, 1], [2, 2]).or(select.points([[0, 0]])),
    ]) {
      const blocks = resolve(where, [4, 4]);
      expect(resolve(where, [9, 9])).toBe(blocks);
      refused(where, [2, 2]);
      expect(resolve(where, [4, 4])).toBe(blocks);
    }
  });

  test('a selection does not change with what it was made from', () => {
    const start = [1, 1];
    const slab = { start, count: [1, 1] };
    const made = [
      select.box(start, [1, 1]),
      select.hyperslab(slab),
      select.points([start]),
      select.none().or(slab),
      select.blocks([start], [[1, 1]]),
    ];
    start[0] = 3;
    for (const where of made)
      expect(pairs(resolve(where, [9, 9]))).toEqual([
        [
          [1, 1],
          [1, 1],
        ],
      ]);
  });
});

describe('chains', () => {
  test.each(['or', 'xor', 'minus'] as const)('20,000 operations %s', (operation) => {
    let where: Selection = operation === 'minus' ? select.box([0, 0], [20_000, 5]) : select.none();
    for (let i = 0; i < 20_000; i++) where = where[operation]({ start: [i, i % 4], count: [1, 1] });
    expect(resolve(where, [20_000, 5]).size).toBe(operation === 'minus' ? 80_000 : 20_000);
  });

  test('alternating operations, deeper than a stack', () => {
    let where: Selection = select.none();
    for (let i = 0; i < 6000; i++) where = where.or({ start: [i], count: [3] }).minus({ start: [i + 1], count: [1] });
    expect(resolve(where, [7000]).size).toBe(6001);
  });

  test('a selection combined with itself again and again', () => {
    let where = select.box([0], [2]);
    for (let i = 0; i < 60; i++) where = where.or(where);
    expect(where.size).toBe(2);
  });
});
