import { join } from 'node:path';
import { type Attributes, type Dataset, File, type Group, select, T } from 'h5log';
import { describe, expect, test } from 'vitest';
import { sessionOf } from '../../src/api/handle.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
let made = 0;

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const refused = (code: string) => expect.objectContaining({ name: 'H5LogError', code });

/** What a program may rely on, whichever connector is behind the file. */
describe.each(['log', 'native'] as const)('the %s connector', (connector) => {
  const create = (): Promise<File> => File.create(join(folder, `${connector}-${made++}.h5`), { connector });
  const again = async (file: File): Promise<File> => {
    await file.close();
    return File.open(sessionOf(file).storage.name, { connector });
  };

  test('says which it is', async () => {
    const file = await create();
    expect([file.connector, file.mode, file.closed, file.kind, file.path]).toEqual([
      connector,
      'r+',
      false,
      'group',
      '/',
    ]);
    file.createDataset('x', { dtype: 'int8', shape: [1] });
    const reader = await again(file);
    expect([file.closed, reader.mode, reader.connector]).toEqual([true, 'r', connector]);
    await reader.close();
  });

  test.each([
    ['int8', Int8Array.of(-128, 127, 5)],
    ['uint8', Uint8Array.of(0, 255, 5)],
    ['int16', Int16Array.of(-32768, 32767, 5)],
    ['uint16', Uint16Array.of(0, 65535, 5)],
    ['int32', Int32Array.of(-(2 ** 31), 2 ** 31 - 1, 5)],
    ['uint32', Uint32Array.of(0, 2 ** 32 - 1, 5)],
    ['int64', BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n, 5n)],
    ['uint64', BigUint64Array.of(0n, 2n ** 64n - 1n, 5n)],
    ['float32', Float32Array.of(1.5, Number.NaN, -Infinity)],
    ['float64', Float64Array.of(Math.PI, -0, 1e300)],
  ] as const)('keeps %s', async (dtype, values) => {
    const file = await create();
    file.createDataset('d', { dtype, shape: [3] }).write(values);
    const reader = await again(file);
    const read = await reader.dataset('d', dtype).read();
    expect(read).toEqual(values);
    expect(reader.dataset('d').readSync()).toEqual(values);
    await reader.close();
  });

  test('converts numbers as HDF5 does', async () => {
    const file = await create();
    const d = file.createDataset('d', { dtype: 'int8', shape: [5] });
    d.write(Float64Array.of(300, -300, 1.9, -1.9, 0));
    expect([...(await d.read())]).toEqual([127, -128, 1, -1, 0]);
    expect([...(await d.read(undefined, { into: new Float32Array(5) }))]).toEqual([127, -128, 1, -1, 0]);
    await file.close();
  });

  test('keeps records and fixed-length texts', async () => {
    const file = await create();
    const pair = T.compound({ id: 'int32', value: 'float64' });
    file.createDataset('pairs', { dtype: pair, shape: [2] }).write([
      { id: 1, value: 0.5 },
      { id: 2, value: -0.5 },
    ]);
    const text = T.string({ length: 8, pad: 'space', charset: 'utf8' });
    file.createDataset('text', { dtype: text, shape: [2] }).write(['one', 'zwölf']);
    const reader = await again(file);
    expect(await reader.dataset('pairs').read()).toEqual([
      { id: 1, value: 0.5 },
      { id: 2, value: -0.5 },
    ]);
    expect(await reader.dataset('text').read()).toEqual(['one', 'zwölf']);
    await reader.close();
  });

  test('selects boxes, strides, points, unions and many blocks, for writing and reading', async () => {
    const file = await create();
    const d = file.createDataset('d', { dtype: 'float64', shape: [4, 6] });
    d.write(Float64Array.from(range(24)));
    d.write(Float64Array.of(-1, -2, -3, -4), select.hyperslab({ start: [0, 0], stride: [2, 3], count: [2, 2] }));
    d.write(
      Float64Array.of(-5, -6),
      select.points([
        [3, 5],
        [1, 1],
      ]),
    );
    d.writeMany(Float64Array.of(-7, -8, -9), [2, 1, 0, 5], [1, 2, 1, 1].slice(0, 2).concat([1, 1]));
    const expected = range(24);
    [
      [0, -1],
      [3, -2],
      [12, -3],
      [15, -4],
      [23, -5],
      [7, -6],
      [13, -7],
      [14, -8],
      [5, -9],
    ].forEach(([at, value]) => {
      expected[at as number] = value as number;
    });
    const reader = await again(file);
    const e = reader.dataset('d', 'float64');
    expect([...(await e.read())]).toEqual(expected);
    expect([...(await e.read({ start: [1, 2], count: [2, 3] }))]).toEqual([8, 9, 10, -8, -4, 16]);
    expect([
      ...(await e.read(
        select.points([
          [3, 5],
          [0, 0],
          [3, 5],
        ]),
      )),
    ]).toEqual([-5, -1, -5]);
    const union = select.box([0, 0], [1, 2]).or(select.box([0, 1], [2, 1]));
    expect([...(await e.read(union))]).toEqual([-1, 1, -6]);
    expect([...(await e.readMany([3, 0, 0, 0], [1, 2]))]).toEqual([18, 19, -1, 1]);
    expect([...(await e.read(select.none()))]).toEqual([]);
    const memory = { shape: [2, 4], where: { start: [0, 1], count: [2, 2] } };
    const into = new Float64Array(8).fill(9);
    await e.read({ start: [0, 0], count: [2, 2] }, { memory, into });
    expect([...into]).toEqual([9, -1, 1, 9, 9, 6, -6, 9]);
    const raw = await e.read({ start: [1, 0], count: [1, 1] }, { raw: true });
    expect([...raw]).toEqual([...new Uint8Array(Float64Array.of(6).buffer)]);
    await reader.close();
  });

  test('changes shapes within the maximum, with zeros where nothing was written', async () => {
    const file = await create();
    const d = file.createDataset('d', { dtype: 'int32', shape: [2, 2], maxShape: [null, 3], chunks: [2, 2] });
    d.write(Int32Array.of(1, 2, 3, 4));
    d.resize([3, 3]);
    expect([...(await d.read())]).toEqual([1, 2, 0, 3, 4, 0, 0, 0, 0]);
    d.resize([1, 1]);
    d.resize([2, 2]);
    expect([...(await d.read())]).toEqual([1, 0, 0, 0]);
    expect(() => d.resize([1, 4])).toThrow(refused('SHAPE'));
    const reader = await again(file);
    const { shape, maxShape, chunks } = reader.dataset('d');
    expect([shape, maxShape, chunks]).toEqual([
      [2, 2],
      [null, 3],
      [2, 2],
    ]);
    await reader.close();
  });

  test('keeps scalars and datasets without elements', async () => {
    const file = await create();
    file.createDataset('scalar', { dtype: 'float32', shape: [] }).write([2.5]);
    file.createDataset('empty', { dtype: 'float32', shape: [0, 3] });
    const reader = await again(file);
    expect([...(await reader.dataset('scalar', 'float32').read())]).toEqual([2.5]);
    expect(await reader.dataset('empty').read()).toEqual(new Float32Array(0));
    await reader.close();
  });

  test('keeps attributes of every object', async () => {
    const file = await create();
    const set = (attributes: Attributes): void => {
      attributes.set('number', 1.5);
      attributes.set('text', 'words');
      attributes.set('texts', ['a', 'b']);
      attributes.set('list', Int16Array.of(1, 2, 3));
      attributes.set('big', 7n);
      attributes.set('gone', 1);
      attributes.set('number', 2.5);
      attributes.delete('gone');
    };
    set(file.attributes);
    set(file.createGroup('g').attributes);
    set(file.createDataset('g/d', { dtype: 'int8', shape: [1] }).attributes);
    const reader = await again(file);
    for (const path of ['/', '/g', '/g/d']) {
      const { attributes } = (path === '/' ? reader : reader.get(path)) as Group | Dataset;
      expect([...attributes.keys()].sort(), path).toEqual(['big', 'list', 'number', 'text', 'texts']);
      expect(attributes.size).toBe(5);
      expect(attributes.get('number')).toBe(2.5);
      expect(attributes.get('text')).toBe('words');
      expect(attributes.get('texts')).toEqual(['a', 'b']);
      expect(attributes.get('list')).toEqual(Int16Array.of(1, 2, 3));
      expect(attributes.get('big')).toBe(7n);
      expect(attributes.get('gone')).toBeUndefined();
      expect(attributes.describe('list')).toEqual({ dtype: 'int16', shape: [3] });
    }
    await reader.close();
  });

  test('keeps groups and links', async () => {
    const file = await create();
    file.createGroup('a/b');
    file.createDataset('a/b/d', { dtype: 'int8', shape: [2] }).write([1, 2]);
    file.createSoftLink('soft', '/a/b/d');
    file.createHardLink('hard', '/a/b/d');
    file.createSoftLink('nowhere', '/not/there');
    const reader = await again(file);
    expect([...reader.keys()].sort()).toEqual(['a', 'hard', 'nowhere', 'soft']);
    expect([...reader.group('a').keys()]).toEqual(['b']);
    for (const path of ['a/b/d', 'soft', 'hard', '/a/b/d'])
      expect([...(await reader.dataset(path, 'int8').read())], path).toEqual([1, 2]);
    expect([reader.has('soft'), reader.has('nowhere'), reader.get('nowhere')]).toEqual([true, false, undefined]);
    expect(() => reader.dataset('a')).toThrow(refused('NOT_FOUND'));
    expect(() => reader.group('soft')).toThrow(refused('NOT_FOUND'));
    await reader.close();
  });

  test('throws with the same codes', async () => {
    const file = await create();
    const d = file.createDataset('d', { dtype: 'int16', shape: [3] });
    d.write([1, 2, 3]);
    expect(() => file.createDataset('d', { dtype: 'int8', shape: [1] })).toThrow(refused('EXISTS'));
    expect(() => file.createGroup('d/x')).toThrow(refused('EXISTS'));
    expect(() => file.createHardLink('h', '/not/there')).toThrow(refused('NOT_FOUND'));
    expect(() => d.write([1, 2])).toThrow(refused('SHAPE'));
    expect(() => d.write([1], { start: [3], count: [1] })).toThrow(refused('SELECTION'));
    expect(() => d.write(['x', 'y', 'z'] as unknown as number[])).toThrow(refused('DTYPE'));
    expect(() => file.dataset('d', 'float64')).toThrow(refused('DTYPE'));
    expect(() => d.attributes.delete('none')).toThrow(refused('NOT_FOUND'));
    await expect(d.read({ start: [0], count: [4] })).rejects.toThrow(refused('SELECTION'));
    await expect(File.open(join(folder, 'missing.h5'), { connector })).rejects.toThrow(refused('NOT_FOUND'));
    await expect(File.open(sessionOf(file).storage.name, { connector, mode: 'r+' })).rejects.toThrow(refused('LOCKED'));
    const reader = await again(file);
    expect(() => reader.createGroup('g')).toThrow(refused('READ_ONLY'));
    expect(() => d.write([1, 2, 3])).toThrow(refused('CLOSED'));
    await reader.close();
  });
});
