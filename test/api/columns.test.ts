import { join } from 'node:path';
import { type Columns, File, select, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { refusal } from './refusal.ts';

// The library behind the native connector makes numbers and strings; a log has all of them.
const simple = {
  id: 'uint16',
  time: 'int64',
  value: 'float64',
  name: T.string({ length: 3, charset: 'ascii', pad: 'zero' }),
} as const;
const records = {
  log: T.compound({
    ...simple,
    big: T.bigEndian('float32'),
    flag: T.bool,
    level: T.enum('int8', { low: 0, high: 1 }),
    pair: T.array('int16', [2]),
  }),
  native: T.compound(simple),
} as const;

/** The part of an object that has fields of the type. */
const fitting = <V extends object>(connector: 'log' | 'native', object: V): V =>
  Object.fromEntries(Object.entries(object).filter(([name]) => connector === 'log' || name in simple)) as V;

const allRows = (n: number) =>
  Array.from({ length: n }, (_, i) => ({
    id: i,
    time: BigInt(i) * 1000n,
    value: i / 3,
    flag: i % 3 === 0,
    level: i % 2,
    name: `n${i % 10}`,
    pair: Int16Array.of(i, -i),
    big: i + 0.5,
  }));

const allColumns = (n: number): Columns => {
  const list = allRows(n);
  return {
    id: Uint16Array.from(list, ({ id }) => id),
    time: BigInt64Array.from(list, ({ time }) => time),
    value: Float64Array.from(list, ({ value }) => value),
    flag: Uint8Array.from(list, ({ flag }) => Number(flag)),
    level: Int8Array.from(list, ({ level }) => level),
    name: list.map(({ name }) => name),
    pair: list.map(({ pair }) => pair),
    big: Float32Array.from(list, ({ big }) => big),
  };
};

describe.each(['log', 'native'] as const)('columns of a compound (%s)', (connector) => {
  const record = records[connector] as typeof records.log;
  const rows = (n: number) => allRows(n).map((row) => fitting(connector, row));
  const columns = (n: number): Columns => fitting(connector, allColumns(n));

  test('are read as one array a field', async () => {
    const file = File.createSync(join(temporaryDirectory(), 'c.h5'), { connector });
    const x = file.createDataset('x', { dtype: record, shape: [20] });
    x.write(rows(20));
    expect(await x.read(undefined, { columns: true })).toEqual(columns(20));
    expect(x.readSync({ count: [7] }, { columns: true })).toEqual(columns(7));
    expect(await x.read({ start: [3], count: [1] }, { columns: ['time', 'name'] })).toEqual({
      time: BigInt64Array.of(3000n),
      name: ['n3'],
    });
    expect(x.readSync(select.points([[5], [2], [5]]), { columns: ['id'] })).toEqual({ id: Uint16Array.of(5, 2, 5) });
    const memory = { shape: [4], where: { start: [1], count: [2] } };
    expect(x.readSync({ start: [8], count: [2] }, { columns: ['id'], memory })).toEqual({
      id: Uint16Array.of(0, 8, 9, 0),
    });
    file.closeSync();
  });

  test('are written', async () => {
    const file = File.createSync(join(temporaryDirectory(), 'c.h5'), { connector });
    const x = file.createDataset('x', { dtype: record, shape: [20] });
    x.write(columns(20), undefined, { columns: true });
    expect(x.readSync()).toEqual(rows(20));
    file.closeSync();
  });
});

describe('columns of a log', () => {
  test('take names of enums, and booleans', () => {
    const file = File.createSync(memoryStorage());
    const x = file.createDataset('x', { dtype: records.log, shape: [20] });
    const named = { ...allColumns(3), level: ['high', 'low', 1], flag: [true, false, true] };
    x.write(named, { start: [10], count: [3] }, { columns: true });
    expect(x.readSync({ start: [10], count: [3] }, { columns: ['level', 'flag'] })).toEqual({
      level: Int8Array.of(1, 0, 1),
      flag: Uint8Array.of(1, 0, 1),
    });
  });
});

describe.each(['log', 'native'] as const)('columns (%s)', (connector) => {
  test('must fit', async () => {
    const file = File.createSync(join(temporaryDirectory(), 'c.h5'), { connector });
    const x = file.createDataset('x', { dtype: T.compound({ a: 'int8', b: 'int8' }), shape: [2] });
    const write = (data: unknown) => () => x.write(data as Columns, undefined, { columns: true });
    expect((await refusal(write({ a: [1, 2] }))).message).toMatch(/'b'/);
    expect((await refusal(write({ a: [1, 2], b: [1, 2], c: [1, 2] }))).message).toMatch(/'c'/);
    expect((await refusal(write({ a: [1, 2], b: [1] }))).code).toBe('SHAPE');
    expect((await refusal(write({ a: [1], b: [1] }))).code).toBe('SHAPE');
    expect((await refusal(write([{ a: 1, b: 1 }]))).code).toBe('DTYPE');
    expect((await refusal(() => x.read(undefined, { columns: ['d'] }))).code).toBe('OPTION');
    expect((await refusal(() => x.readSync(undefined, { columns: false } as never))).code).toBe('OPTION');
    expect((await refusal(() => x.readSync(undefined, { columns: true, raw: true } as never))).code).toBe('OPTION');
    const y = file.createDataset('y', { dtype: 'int8', shape: [2] });
    expect((await refusal(() => y.read(undefined, { columns: true }))).code).toBe('DTYPE');
    expect((await refusal(() => y.write({ a: [1, 2] }, undefined, { columns: true }))).code).toBe('DTYPE');
    file.closeSync();
  });
});

test('columns of ordinary compounds with variable-length fields are read', async () => {
  const file = File.createSync(join(temporaryDirectory(), 'c.h5'), { connector: 'native' });
  const dtype = T.compound({ name: T.string(), n: 'int32' });
  const x = file.createDataset('x', { dtype, shape: [2] });
  const data = { name: ['a', 'bcd'], n: Int32Array.of(7, 8) };
  x.write(data, undefined, { columns: true });
  expect(await x.read(undefined, { columns: true })).toEqual(data);
  file.closeSync();
});

test('columns are at least ten times as fast as objects', () => {
  const n = 100_000;
  const dtype = T.compound({ time: 'int64', x: 'float64', y: 'float64', channel: 'int32', quality: 'float32' });
  const data = {
    time: new BigInt64Array(n).fill(5n),
    x: new Float64Array(n).fill(1),
    y: new Float64Array(n).fill(2),
    channel: new Int32Array(n),
    quality: new Float32Array(n),
  };
  const file = File.createSync(memoryStorage());
  const d = file.createDataset('x', { dtype, shape: [n] });
  const objects = Array.from({ length: n }, (_, i) => ({ time: 5n, x: 1, y: 2, channel: i, quality: 1 }));
  // A call with columns takes 3 ms, which one interruption can double, one with objects 50 ms: the short one gets more tries.
  const rate = (work: () => unknown, rounds: number): number => {
    let least = Infinity;
    for (let round = 0; round < rounds; round++) {
      const began = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(began);
      least = Math.min(least, (user + system) / 1e6);
    }
    return n / least;
  };
  const written = {
    writeObjects: rate(() => d.write(objects), 5),
    writeColumns: rate(() => d.write(data, undefined, { columns: true }), 20),
  };
  file.flushSync();
  const rates = {
    ...written,
    readObjects: rate(() => d.readSync(), 5),
    readColumns: rate(() => d.readSync(undefined, { columns: true }), 20),
  };
  for (const [what, value] of Object.entries(rates)) console.log(`${what}: ${(value / 1e6).toFixed(2)} million rows/s`);
  expect(rates.writeColumns / rates.writeObjects).toBeGreaterThan(10);
  expect(rates.readColumns / rates.readObjects).toBeGreaterThan(10);
});

describe.each(['log', 'native'] as const)('read as another number type (%s)', (connector) => {
  const make = () => {
    const file = File.createSync(join(temporaryDirectory(), 'a.h5'), { connector });
    const wide = file.createDataset('wide', { dtype: 'int64', shape: [4] });
    wide.write(BigInt64Array.of(1n, -2n, 2n ** 53n, -(2n ** 63n)));
    const real = file.createDataset('real', { dtype: 'float64', shape: [5] });
    real.write(Float64Array.of(1.75, -3, 300, Number.NaN, -Infinity));
    return { file, wide, real };
  };

  test('converts with the rules of HDF5', async () => {
    const { file, wide, real } = make();
    expect(await wide.read(undefined, { as: 'float64' })).toEqual(Float64Array.of(1, -2, 2 ** 53, -(2 ** 63)));
    expect(wide.readSync({ count: [2] }, { as: 'uint8' })).toEqual(Uint8Array.of(1, 0));
    expect(await real.read(undefined, { as: 'int8' })).toEqual(Int8Array.of(1, -3, 127, 0, -128));
    expect(await real.read({ count: [3] }, { as: 'int64' })).toEqual(BigInt64Array.of(1n, -3n, 300n));
    expect(await real.read(undefined, { as: 'float64' })).toEqual(await real.read());
    expect(real.readSync(select.points([[2], [0]]), { as: 'float32' })).toEqual(Float32Array.of(300, 1.75));
    const memory = {
      shape: [2, 2],
      where: select.points([
        [1, 1],
        [0, 0],
      ]),
    };
    expect(real.readSync({ count: [2] }, { as: 'int16', memory })).toEqual(Int16Array.of(-3, 0, 0, 1));
    file.closeSync();
  });

  test('rounds to half precision', () => {
    const { file, real } = make();
    real.write(Float64Array.of(1 / 3, 65520, 1e-8, 2049, -0));
    expect(real.readSync(undefined, { as: 'float16' })).toEqual(Float32Array.of(0.333251953125, Infinity, 0, 2048, -0));
    file.closeSync();
  });

  test('refuses what is no number', async () => {
    const { file, real } = make();
    const s = file.createDataset('s', { dtype: T.string({ length: 2, charset: 'ascii', pad: 'zero' }), shape: [2] });
    expect((await refusal(() => s.read(undefined, { as: 'float64' }))).code).toBe('DTYPE');
    expect((await refusal(() => real.read(undefined, { as: 'float65' as 'float64' }))).code).toBe('DTYPE');
    const both = { as: 'int8', into: new Int8Array(5) } as never;
    expect((await refusal(() => real.read(undefined, both))).code).toBe('OPTION');
    file.closeSync();
  });
});

test('enums and booleans are read as their numbers', () => {
  const file = File.createSync(memoryStorage());
  const e = file.createDataset('e', { dtype: T.enum('int16', { a: 1, b: 300 }), shape: [2] });
  e.write(['a', 'b']);
  expect(e.readSync(undefined, { as: 'float32' })).toEqual(Float32Array.of(1, 300));
});
