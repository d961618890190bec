import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import type { DType, NumberType } from '../../src/dtype/model.ts';
import { NULL_SPACE, SCALAR_SPACE, simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { h5dump, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { checkFile, printTally } from './check.ts';
import { Draft } from './driver.ts';

const folder = temporaryDirectory();
const fresh = (name: string): [string, Draft] => {
  const path = join(folder, name);
  return [path, Draft.create(path)];
};

const NUMBERS: Record<NumberType, ArrayLike<number | bigint>> = {
  int8: [-128, 127, 0, 1, -1, 5],
  uint8: [0, 255, 1, 2, 3, 200],
  int16: [-32768, 32767, 0, 1, -1, 300],
  uint16: [0, 65535, 1, 2, 3, 300],
  int32: [-(2 ** 31), 2 ** 31 - 1, 0, 1, -1, 70000],
  uint32: [0, 2 ** 32 - 1, 1, 2, 3, 70000],
  int64: [-(2n ** 63n), 2n ** 63n - 1n, 0n, 1n, -1n, 2n ** 53n + 1n],
  uint64: [0n, 2n ** 64n - 1n, 1n, 2n, 3n, 2n ** 53n + 1n],
  float16: [0, -1.5, 65504, 2 ** -24, Number.POSITIVE_INFINITY, Number.NaN],
  float32: [0, -1.5, 2 ** 127, 2 ** -149, Number.NEGATIVE_INFINITY, Number.NaN],
  float64: [0, -1.5, Number.MAX_VALUE, Number.MIN_VALUE, Number.NEGATIVE_INFINITY, Number.NaN],
};

const particle = T.compound({
  name: T.string({ length: 8 }),
  position: T.array('float64', [3]),
  valid: T.bool,
  count: 'int16',
});
const gappy = T.compound(
  {
    late: 'uint8',
    early: T.bigEndian('int32'),
    inner: T.compound({ x: 'float32', y: 'float32' }, { offsets: { x: 2, y: 9 }, size: 16 }),
  },
  { offsets: { late: 30, early: 3, inner: 10 }, size: 41 },
);
const atoms = (n: number): unknown[] =>
  Array.from({ length: n }, (_, i) => ({
    name: `p${i}ä`,
    position: Float64Array.of(i, i / 3, -i),
    valid: i % 2 === 0,
    count: i * 100,
  }));
const gaps = { late: 200, early: -7, inner: { x: 1.5, y: -2.25 } };

/** Types beside the numbers, each with six values. */
const OTHERS: [name: string, dtype: DType, values: ArrayLike<unknown>][] = [
  ['bool', T.bool, [1, 0, 1, 1, 0, 0]],
  ['variable', T.string(), ['', 'a', 'Grüße', 'a longer text of some words', '日本', 'z']],
  ['variable ascii', T.string({ charset: 'ascii' }), ['', 'a', 'bc', 'def', 'ghij', 'z']],
  ['compound', particle, atoms(6)],
  ['gaps', gappy, Array(6).fill(gaps)],
  [
    'compound of texts',
    T.compound({ id: 'int32', text: T.string(), list: T.vlen('int16') }),
    Array.from({ length: 6 }, (_, i) => ({ id: i, text: `t${i}`, list: Int16Array.from({ length: i }, (_, k) => k) })),
  ],
  ['enum', T.enum('int16', { up: 1, down: -1, none: 300 }), [1, -1, 300, 1, 1, -1]],
  // h5py takes the values of members for int64.
  ['enum 64', T.enum('uint64', { zero: 0, most: 2n ** 63n - 1n }), [0n, 2n ** 63n - 1n, 0n, 0n, 0n, 0n]],
  [
    'array',
    T.array('int32', [2, 3]),
    Array.from({ length: 6 }, (_, i) => Int32Array.from({ length: 6 }, (_, k) => i * 10 + k)),
  ],
  ['array of texts', T.array(T.string({ length: 4 }), [2]), Array.from({ length: 6 }, (_, i) => [`a${i}`, 'four'])],
  [
    'array of compounds',
    T.array(T.compound({ a: 'int8', b: 'float64' }), [2]),
    Array.from({ length: 6 }, (_, i) => [
      { a: i, b: 0.5 },
      { a: -i, b: i },
    ]),
  ],
  ['opaque', T.opaque(5, 'five bytes'), Array.from({ length: 6 }, (_, i) => Uint8Array.of(0, i, 255, 0, i))],
  ['opaque without tag', T.opaque(3), Array.from({ length: 6 }, (_, i) => Uint8Array.of(i, 1, 2))],
  ['opaque with the longest tag', T.opaque(1, 't'.repeat(247)), Array.from({ length: 6 }, (_, i) => Uint8Array.of(i))],
  ['bits 1', T.bitfield(1), [0, 1, 128, 255, 3, 7]],
  ['bits 2', T.bitfield(2), [0, 1, 128, 65535, 3, 7]],
  ['bits 4', T.bitfield(4), [0, 1, 128, 2 ** 32 - 1, 3, 7]],
  ['bits 8', T.bitfield(8), [0n, 1n, 128n, 2n ** 64n - 1n, 3n, 7n]],
  [
    'sequence',
    T.vlen('float64'),
    Array.from({ length: 6 }, (_, i) => Float64Array.from({ length: i }, (_, k) => k / 2)),
  ],
  // h5py 3.7 cannot read an empty one of these, not even its own.
  [
    'sequence of records',
    T.vlen(T.compound({ a: 'int8', b: 'float64' })),
    Array.from({ length: 6 }, (_, i) => Array.from({ length: i + 1 }, (_, k) => ({ a: k, b: i }))),
  ],
];
for (const charset of ['ascii', 'utf8'] as const) {
  for (const pad of ['zero', 'null', 'space'] as const) {
    const values = ['', 'a', 'bc', 'def', charset === 'utf8' ? 'äö' : 'four', pad === 'zero' ? '1234567' : '12345678'];
    OTHERS.push([`${charset} ${pad}`, T.string({ length: 8, pad, charset }), values]);
  }
}

withOracle(['h5dump', 'h5ls', 'ncdump', 'python'], 'attributes that we write', () => {
  afterAll(() => printTally('interop: attributes that we write'));

  /** Scalar, 1-d, 2-d, empty and null: every dataspace. */
  function everySpace(draft: Draft, where: string, name: string, dtype: DType, values: ArrayLike<unknown>): void {
    const list = Array.from(values);
    draft.attribute(where, `${name} scalar`, dtype, SCALAR_SPACE, list[1]);
    draft.attribute(where, `${name} 1-d`, dtype, simpleSpace([6]), values);
    draft.attribute(where, `${name} 2-d`, dtype, simpleSpace([2, 3]), values);
    draft.attribute(where, `${name} one`, dtype, simpleSpace([1]), [list[2]]);
    draft.attribute(where, `${name} empty`, dtype, simpleSpace([0]), []);
    draft.attribute(where, `${name} null`, dtype, NULL_SPACE, null);
  }

  test('of every number type in both byte orders', async () => {
    const [path, draft] = fresh('numbers.h5');
    for (const [name, values] of Object.entries(NUMBERS)) {
      draft.group(`/${name}`);
      everySpace(draft, `/${name}`, 'little', name as NumberType, values);
      everySpace(draft, `/${name}`, 'big', T.bigEndian(name as NumberType), values);
    }
    draft.close();
    await checkFile(path, draft, { noNetcdf: 'netCDF has no type for half floats' });
  });

  test('of the number types that netCDF knows', async () => {
    const [path, draft] = fresh('netcdf-numbers.h5');
    for (const [name, values] of Object.entries(NUMBERS)) {
      if (name === 'float16') continue;
      draft.group(`/${name}`);
      draft.attribute(`/${name}`, 'value', name as NumberType, SCALAR_SPACE, values[1]);
      draft.attribute(`/${name}`, 'list', name as NumberType, simpleSpace([6]), values);
    }
    draft.attribute('/', 'title', T.string(), SCALAR_SPACE, 'a file');
    draft.attribute('/', 'fixed', T.string({ length: 6 }), SCALAR_SPACE, 'a file');
    draft.close();
    await checkFile(path, draft);
  });

  test('of every other type', async () => {
    const [path, draft] = fresh('others.h5');
    for (const [name, dtype, values] of OTHERS) {
      draft.group(`/${name}`);
      everySpace(draft, `/${name}`, 'value', dtype, values);
    }
    draft.close();
    await checkFile(path, draft);
  });

  test('sequences of big-endian numbers, which h5py 3.7 reads in the wrong byte order, also its own', () => {
    const [path, draft] = fresh('big-endian-sequences.h5');
    draft.attribute('/', 'lists', T.vlen(T.bigEndian('int16')), simpleSpace([2]), [Int16Array.of(1, 2, -3), []]);
    draft.close();
    expect(h5dump('-a', '/lists', path)).toMatch(/H5T_STD_I16BE.*\(0\): \(1, 2, -3\), \(\)/s);
  });

  test('an empty text is a text of no characters, not NULL', () => {
    const [path, draft] = fresh('empty-text.h5');
    draft.attribute('/', 'texts', T.string(), simpleSpace([2]), ['', 'a']);
    draft.close();
    expect(h5dump('-a', '/texts', path)).toMatch(/\(0\): "", "a"/);
  });

  test('an opaque tag too long for libhdf5 is refused', () => {
    expect(() => T.opaque(1, 't'.repeat(249))).toThrow(/tag/);
  });

  test('object references, alone and inside other types', async () => {
    const [path, draft] = fresh('references.h5');
    draft.group('/a');
    draft.group('/a/b');
    draft.numbers('/a/data', 'float64', simpleSpace([3]), Float64Array.of(1, 2, 3));
    draft.datatype('/type', T.compound({ a: 'int16' }));
    draft.attribute('/', 'to', T.reference, SCALAR_SPACE, '/a');
    draft.attribute('/a', 'up and down', T.reference, simpleSpace([4]), ['/', '/a/b', '/a/data', '/type']);
    draft.attribute('/a', 'nowhere', T.reference, simpleSpace([2]), ['', '/a']);
    draft.attribute('/a/b', 'lists', T.vlen(T.reference), simpleSpace([3]), [['/a'], [], ['/a/b', '/']]);
    const pair = T.compound({ to: T.reference, dimension: 'int32' });
    draft.attribute('/a/b', 'pairs', pair, simpleSpace([2]), [
      { to: '/a/data', dimension: 1 },
      { to: '/', dimension: 2 },
    ]);
    draft.close();
    await checkFile(path, draft);
  });

  test('1 and 300 of them, on groups, datasets and committed types, in order of creation', async () => {
    const [path, draft] = fresh('many.h5');
    draft.group('/one');
    draft.group('/many');
    draft.numbers('/data', 'int32', simpleSpace([2]), Int32Array.of(1, 2));
    draft.datatype('/type', T.compound({ a: 'int16' })); // netCDF knows no committed numbers
    draft.attribute('/one', 'only', 'int32', SCALAR_SPACE, 1);
    for (const where of ['/many', '/data', '/type']) {
      for (let i = 0; i < 300; i++) draft.attribute(where, `n${(i * 7919) % 300}`, 'int32', SCALAR_SPACE, i);
    }
    draft.close();
    const seen = await checkFile(path, draft);
    const names = Array.from({ length: 300 }, (_, i) => `n${(i * 7919) % 300}`);
    for (const where of ['/many', '/data', '/type'])
      expect(seen[where]?.attributes?.map(([name]) => name)).toEqual(names);
  });

  test('names in UTF-8 and long ones; a name of 70,000 bytes is refused', async () => {
    const [path, draft] = fresh('names.h5');
    const names = ['größe', '日本語', '😀 two words', 'x'.repeat(300), 'ü'.repeat(150), '.dots.', 'a "quoted" name'];
    for (const [i, name] of names.entries()) {
      draft.attribute('/', name, 'int32', SCALAR_SPACE, i);
      draft.group(`/${name}`);
    }
    const long = 'y'.repeat(70_000);
    expect(() => draft.attribute('/', long, 'int32', SCALAR_SPACE, 1)).toThrow(/70,?0\d\d bytes|at most 65,?535/);
    expect(() => draft.group(`/${long}`)).toThrow(/70,?0\d\d bytes|at most 65,?535/);
    expect(() => draft.softLink(`/${long}`, '/a')).toThrow(/at most 65,?535/);
    draft.close();
    await checkFile(path, draft, { noNetcdf: 'netCDF allows names of at most 256 bytes' });
  });

  test('a value near the limit of a message, and one beyond', async () => {
    const [path, draft] = fresh('large.h5');
    draft.attribute('/', 'large', 'uint8', simpleSpace([65_400]), new Uint8Array(65_400).fill(7));
    draft.attribute('/', 'text', T.string(), SCALAR_SPACE, 'x'.repeat(200_000));
    draft.commit();
    draft.attribute('/', 'larger', 'uint8', simpleSpace([65_536]), new Uint8Array(65_536).fill(9));
    draft.close();
    await checkFile(path, draft);
  });
});
