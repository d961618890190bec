import { type Dataset, type DType, type ErrorCode, File, isH5LogError, select, T, type Where } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

// Whatever is wrong is refused with its code before anything is posted, and what was there before stays.

/** References to parts of datasets, which a log cannot hold. */
const REGION = { class: 'reference', size: 12, to: 'region' } as DType;

/** Values that the types do not allow. */
const wrong = <X>(value: unknown): X => value as X;

function codeOf(call: () => unknown): ErrorCode | string {
  try {
    call();
  } catch (error) {
    if (isH5LogError(error)) return error.code;
    return `not an H5LogError: ${String(error)}`;
  }
  return 'nothing thrown';
}

type Options = { dtype: 'int32'; shape: number[] };

interface Scene {
  readonly file: File;
  readonly d: Dataset<'int32'>;
  readonly s: Dataset;
  readonly scalar: Dataset<'float64'>;
}

function scene(options: Parameters<typeof File.create>[1] = {}): Scene {
  const file = File.createSync(memoryStorage(), options);
  const d = file.createDataset('d', { dtype: 'int32', shape: [4, 5], maxShape: [null, 6] });
  const s = file.createDataset('s', { dtype: T.string({ length: 4 }), shape: [3] });
  const scalar = file.createDataset('scalar', { dtype: 'float64', shape: [] });
  file.flushSync();
  d.write(Int32Array.of(7), { start: [0, 0], count: [1, 1] });
  return { file, d, s, scalar };
}

/** The call throws that code, posts nothing, and the next flush commits what was there before and nothing else. */
function refused(code: ErrorCode, call: (scene: Scene) => unknown): void {
  const made = scene();
  const { file, d } = made;
  const before = { pending: file.pending, sequence: file.sequence, keys: [...file.keys()], shape: d.shape };
  expect(codeOf(() => call(made))).toBe(code);
  expect({ pending: file.pending, sequence: file.sequence, keys: [...file.keys()], shape: d.shape }).toEqual(before);
  expect(file.flushSync().requests).toBe(1);
  const { sequence } = file;
  expect(codeOf(() => call(made))).toBe(code);
  expect(file.flushSync().sequence).toBe(sequence);
  expect(d.readSync()[0]).toBe(7);
  file.closeSync();
}

const one = Int32Array.of(1);
const where = (start: unknown, count: unknown): Where => ({ start, count }) as Where;

describe('a selection that is wrong: SELECTION', () => {
  const selections: Record<string, () => Where> = {
    'outside the dataset': () => where([4, 0], [1, 1]),
    'reaching outside': () => where([3, 0], [2, 1]),
    'outside by a stride': () => ({ start: [0, 0], stride: [3, 1], count: [3, 1] }),
    'a box outside': () => select.box([0, 5], [1, 1]),
    'a point outside': () =>
      select.points([
        [0, 0],
        [0, 5],
      ]),
    'blocks outside': () => select.blocks([[3, 4]], [[1, 2]]),
    'a set outside': () => select.box([0, 0], [1, 1]).or(select.box([9, 9], [1, 1])),
    'a NaN start': () => where([NaN, 0], [1, 1]),
    'a NaN count': () => where([0, 0], [NaN, 1]),
    'a negative start': () => where([-1, 0], [1, 1]),
    'a negative count': () => where([0, 0], [-1, 1]),
    'a negative start in a typed array': () => where(Int32Array.of(0, -1), Int32Array.of(1, 1)),
    'a fraction': () => where([0.5, 0], [1, 1]),
    infinite: () => where([0, 0], [Infinity, 1]),
    'a string as start': () => where(['0', 0], [1, 1]),
    'a bigint as start': () => where([0n, 0], [1, 1]),
    'a hole in the start': () => where(new Array(2), [1, 1]),
    'of too few dimensions': () => where([0], [1]),
    'of too many dimensions': () => where([0, 0, 0], [1, 1, 1]),
    'with a start of other rank': () => where([0, 0], [1]),
    'points of another rank': () => select.points([[0]]),
    'a stride of 0': () => ({ start: [0, 0], stride: [0, 1], count: [2, 1] }),
    'a negative stride': () => ({ start: [3, 0], stride: [-1, 1], count: [1, 1] }),
    'no selection but a number': () => wrong<Where>(3),
    'no selection but a string': () => wrong<Where>('all'),
    'no selection but null': () => wrong<Where>(null),
    'a start that is no list': () => where(0, [1, 1]),
  };
  for (const [name, make] of Object.entries(selections)) {
    test(name, () => {
      refused('SELECTION', ({ d }) => d.write(one, make()));
      refused('SELECTION', ({ d }) => d.write([1], make()));
      refused('SELECTION', ({ d }) => d.write(one, make(), { copy: false }));
      refused('SELECTION', ({ d }) => d.readSync(make()));
    });
  }

  test('of writeMany and readMany', () => {
    const lists: [unknown, unknown][] = [
      [
        [0, 0, 0],
        [1, 1],
      ],
      [[0, 0], [1]],
      [
        [4, 0],
        [1, 1],
      ],
      [
        [0, 0, 0, 5],
        [1, 1],
      ],
      [
        [0, 0, 0, 4],
        [1, 1, 1, 2],
      ],
      [
        [NaN, 0],
        [1, 1],
      ],
      [
        [-1, 0],
        [1, 1],
      ],
      [
        ['0', 0],
        [1, 1],
      ],
      [
        [0.5, 0],
        [1, 1],
      ],
      [3, [1, 1]],
      [[0, 0], undefined],
      [null, [1, 1]],
      [BigInt64Array.of(0n, 0n), [1, 1]],
    ];
    for (const [starts, counts] of lists) {
      refused('SELECTION', ({ d }) => d.writeMany([1], wrong(starts), wrong(counts)));
      refused('SELECTION', ({ d }) => d.writeMany(one, wrong(starts), wrong(counts), { copy: false }));
      refused('SELECTION', ({ d }) => d.readManySync(wrong(starts), wrong(counts)));
    }
  });

  test('of memory', () => {
    const memory = { shape: [4], where: { start: [0], count: [2] } };
    refused('SELECTION', ({ d }) => d.write([1, 2, 3, 4], where([0, 0], [1, 1]), { memory }));
    refused('SELECTION', ({ d }) => d.readSync(where([0, 0], [1, 1]), { memory }));
    refused('SELECTION', ({ d }) =>
      d.write([1, 2, 3, 4], where([0, 0], [1, 2]), { memory: { ...memory, where: { start: [3], count: [2] } } }),
    );
  });
});

describe('data of the wrong length: SHAPE', () => {
  const box = where([0, 0], [2, 2]);
  const data: unknown[] = [
    new Int32Array(3),
    new Int32Array(5),
    new Int32Array(0),
    new Float64Array(3),
    [1, 2, 3],
    [],
    1,
    1n,
    [1n],
  ];
  for (const given of data) {
    test(`${Object.prototype.toString.call(given)} ${String(given)}`, () => {
      refused('SHAPE', ({ d }) => d.write(wrong(given), box));
      refused('SHAPE', ({ d }) => d.write(wrong(given), box, { copy: false }));
      refused('SHAPE', ({ d }) => d.writeMany(wrong(given), [0, 0, 1, 1], [1, 2]));
      refused('SHAPE', ({ d }) => d.write(wrong(given)));
    });
  }
  test('of memory and into', () => {
    refused('SHAPE', ({ d }) => d.write([1, 2, 3], box, { memory: { shape: [4] } }));
    refused('SHAPE', ({ d }) => d.write([1, 2, 3, 4], box, { memory: { shape: [-4] } }));
    refused('SHAPE', ({ d }) => d.readSync(box, { into: new Int32Array(3) }));
    refused('SHAPE', ({ d }) =>
      d.readSync(box, { into: new Int32Array(4), memory: { shape: [5], where: { start: [0], count: [4] } } }),
    );
    refused('SHAPE', ({ scalar }) => scalar.write([1, 2]));
  });
});

describe('values of the wrong kind: DTYPE', () => {
  const values: unknown[] = [
    'text',
    ['1'],
    [null],
    [undefined],
    [{}],
    [[1]],
    [true],
    null,
    undefined,
    {},
    true,
    Symbol('x'),
    () => 1,
    new Date(0),
    new DataView(new ArrayBuffer(4)),
    new ArrayBuffer(4),
    new Array(1),
  ];
  values.forEach((given, i) => {
    test(`number ${i}: ${Object.prototype.toString.call(given)}`, () => {
      const cell = where([1, 1], [1, 1]);
      refused('DTYPE', ({ d }) => d.write(wrong(given), cell));
      refused('DTYPE', ({ d }) => d.write(wrong(given), cell, { copy: false }));
      refused('DTYPE', ({ d }) => d.writeMany(wrong(given), [1, 1], [1, 1]));
      refused('DTYPE', ({ scalar }) => scalar.write(wrong(given)));
    });
  });
  test('where strings belong', () => {
    for (const given of [1, [1, 2, 3], Int32Array.of(1, 2, 3), [null, 'a', 'b'], null]) {
      refused('DTYPE', ({ s }) => s.write(wrong(given), given === 1 ? { start: [0], count: [1] } : undefined));
    }
    refused('DTYPE', ({ s }) => s.readSync(undefined, { into: new Int32Array(3) }));
    refused('DTYPE', ({ d }) => d.readSync(undefined, { into: wrong<Int32Array>(new Array(20)) }));
    refused('DTYPE', ({ d }) => d.readSync(undefined, { into: wrong<Int32Array>(new DataView(new ArrayBuffer(80))) }));
  });
  test('one bad value in the middle of many', () => {
    refused('DTYPE', ({ d }) => d.write(wrong([1, 2, 'x', 4]), where([0, 0], [2, 2])));
    refused('DTYPE', ({ d }) =>
      d.write(
        wrong([1, 'x']),
        select.points([
          [3, 3],
          [0, 0],
        ]),
      ),
    );
  });
});

describe('a dataset that cannot be made', () => {
  const make =
    (options: object, path = 'new/x'): ((scene: Scene) => unknown) =>
    ({ file }) =>
      file.createDataset(path, wrong<Options>({ dtype: 'int32', shape: [2], ...options }));
  const cases: [ErrorCode, object, string?][] = [
    ['UNSUPPORTED', { dtype: REGION }],
    ['UNSUPPORTED', { dtype: T.vlen(REGION) }],
    ['UNSUPPORTED', { dtype: T.compound({ a: T.array(REGION, [2]) }) }],
    ['UNSUPPORTED', { dtype: T.string(), fill: 'x' }],
    ['UNSUPPORTED', { dtype: T.reference, fill: '/d' }],
    ['DTYPE', { dtype: 'int33' }],
    ['DTYPE', { dtype: undefined }],
    ['SHAPE', { shape: [-1] }],
    ['SHAPE', { shape: [1.5] }],
    ['SHAPE', { shape: [NaN] }],
    ['SHAPE', { shape: 3 }],
    ['SHAPE', { shape: undefined }],
    ['SHAPE', { shape: new Array(33).fill(1) }],
    ['SHAPE', { shape: [2 ** 40, 2 ** 40] }],
    ['SHAPE', { maxShape: [1] }],
    ['SHAPE', { maxShape: [2, 2] }],
    ['SHAPE', { maxShape: [-1] }],
    ['SHAPE', { chunks: [1, 1] }],
    ['SHAPE', { chunks: [0] }],
    ['OPTION', { filters: ['gzip'] }],
    ['OPTION', { filters: [{ deflate: 10 }] }],
    ['OPTION', { filters: 'shuffle' }],
    ['DTYPE', { fill: 'x' }],
    ['DTYPE', { fill: null }],
    ['DTYPE', { fill: {} }],
    ['DTYPE', { dtype: T.string({ length: 2 }), fill: 3 }],
    ['EXISTS', {}, 'd'],
    ['EXISTS', {}, '/'],
    ['EXISTS', {}, 'd/below'],
    ['OPTION', {}, ''],
    ['OPTION', {}, 'a\0b'],
  ];
  for (const [code, options, path] of cases) {
    test(`${code}: ${path ?? ''} ${JSON.stringify(options)}`, () => refused(code, make(options, path)));
  }
  test('without options, or with a path that is none', () => {
    refused('OPTION', ({ file }) => file.createDataset('x', wrong<Options>(undefined)));
    refused('OPTION', ({ file }) => file.createDataset(wrong(3), { dtype: 'int8', shape: [] }));
  });
});

describe('names', () => {
  test('that exist: EXISTS', () => {
    refused('EXISTS', ({ file }) => file.createGroup('d'));
    refused('EXISTS', ({ file }) => file.move('d', 's'));
    refused('EXISTS', ({ file }) => file.createHardLink('s', 'd'));
    refused('EXISTS', ({ file }) => file.createSoftLink('s', 'd'));
  });
  test('that do not: NOT_FOUND', () => {
    refused('NOT_FOUND', ({ file }) => file.dataset('x'));
    refused('NOT_FOUND', ({ file }) => file.group('d'));
    refused('NOT_FOUND', ({ file }) => file.delete('x'));
    refused('NOT_FOUND', ({ file }) => file.move('x', 'y'));
    refused('NOT_FOUND', ({ file }) => file.createHardLink('y', 'x'));
  });
  test('a dataset of another type: DTYPE', () => {
    refused('DTYPE', ({ file }) => file.dataset('d', 'int64'));
  });
  test.each(['shared', 'group', 'dataset'] as const)(
    'a dataset that was deleted is gone, logs: %s: NOT_FOUND',
    async (logs) => {
      for (const path of ['x', 'g/x']) {
        const file = File.createSync(memoryStorage(), { logs });
        const x = file.createDataset(path, { dtype: 'int8', shape: [2], maxShape: [null] });
        x.write([1, 2]);
        const begun = x.read();
        file.delete(path.split('/')[0] as string);
        for (let turn = 0; turn < 2; turn++) {
          expect(codeOf(() => x.write([1, 2]))).toBe('NOT_FOUND');
          expect(codeOf(() => x.writeMany([1], [0], [1]))).toBe('NOT_FOUND');
          expect(codeOf(() => x.resize([3]))).toBe('NOT_FOUND');
          expect(codeOf(() => x.readSync())).toBe('NOT_FOUND');
          expect(codeOf(() => x.readManySync([0], [1]))).toBe('NOT_FOUND');
          expect(codeOf(() => x.attributes.set('a', 1))).toBe('NOT_FOUND');
          await expect(x.read()).rejects.toMatchObject({ code: 'NOT_FOUND' });
          file.flushSync();
        }
        expect(await begun).toEqual(Int8Array.of(1, 2));
        file.closeSync();
      }
    },
  );
});

describe('resize: SHAPE', () => {
  const shapes: unknown[] = [
    [4, 7],
    [4],
    [4, 5, 1],
    [-1, 5],
    [1.5, 5],
    [NaN, 5],
    [Infinity, 5],
    'x',
    null,
    [2 ** 53, 6],
  ];
  for (const shape of shapes) test(String(shape), () => refused('SHAPE', ({ d }) => d.resize(wrong(shape))));
});

describe('a file that is open for reading only: READ_ONLY', () => {
  for (const asOf of [undefined, 1]) {
    test(asOf === undefined ? 'at its last commit' : 'at an earlier commit', () => {
      const storage = memoryStorage();
      const made = File.createSync(storage);
      made.createDataset('d', { dtype: 'int8', shape: [2], maxShape: [null] }).write([1, 2]);
      made.flushSync();
      made.attributes.set('a', 1);
      made.closeSync();
      const file = File.openSync(storage, asOf === undefined ? {} : { asOf });
      const d = file.dataset('d', 'int8');
      for (const call of [
        () => d.write([1, 2]),
        () => d.writeMany([1], [0], [1]),
        () => d.resize([3]),
        () => d.attributes.set('a', 1),
        () => file.createGroup('g'),
        () => file.createDataset('e', { dtype: 'int8', shape: [] }),
        () => file.delete('d'),
        () => file.move('d', 'e'),
        () => file.createHardLink('e', 'd'),
        () => file.createSoftLink('e', 'd'),
        () => file.flushSync(),
      ]) {
        expect(codeOf(call), String(call)).toBe('READ_ONLY');
      }
      expect(file.pending).toEqual({ requests: 0, bytes: 0 });
      file.closeSync();
    });
  }
});

describe('options: OPTION', () => {
  const bad: object[] = [
    { table: { merge: 1 } },
    { table: { compress: 'yes' } },
    { table: { compress: -1 } },
    { table: { compress: NaN } },
    { table: { other: true } },
    { table: 3 },
    { bufferLimit: -1 },
    { bufferLimit: '1' },
    { indexLimit: NaN },
    { onBufferFull: 'wait' },
    { durability: 'none' },
    { checksum: 1 },
    { connector: 'x' },
  ];
  for (const options of bad)
    test(JSON.stringify(options), () => expect(codeOf(() => File.createSync(memoryStorage(), options))).toBe('OPTION'));
  test('asOf', () => {
    const storage = memoryStorage();
    File.createSync(storage).closeSync();
    expect(codeOf(() => File.openSync(storage, { mode: 'r+', asOf: 0 }))).toBe('OPTION');
    expect(codeOf(() => File.openSync(storage, { asOf: 0.5 }))).toBe('OPTION');
    expect(codeOf(() => File.openSync(storage, { asOf: 9 }))).toBe('NOT_FOUND');
    expect(codeOf(() => File.openSync(storage, { asOf: -1 }))).toBe('NOT_FOUND');
    File.openSync(storage, { asOf: 0 }).closeSync();
  });
  test('a bad one leaves what was there', () => {
    const storage = memoryStorage();
    const made = File.createSync(storage);
    made.createDataset('d' satisfies string, { dtype: 'int8' satisfies DType, shape: [] });
    made.closeSync();
    expect(codeOf(() => File.createSync(storage, wrong({ table: { merge: 3 } })))).toBe('OPTION');
    expect(File.openSync(storage).has('d')).toBe(true);
  });
});
