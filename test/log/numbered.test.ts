import { copyFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CreateOptions, File, select, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { compact, diff, dump, list, replay, seal, stat, verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { logOf } from '../../src/tools/inside.ts';
import { pythonSync, visitWithH5py, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
let made = 0;
const newPath = (): string => join(folder, `numbered-${made++}.h5`);

const LAYOUTS: readonly CreateOptions[] = [
  { logs: 'group' },
  { logs: 'dataset' },
  { table: { format: 'classic' } },
  { logs: 'group', table: { format: 'classic', bigEndian: true } },
  { logs: 'dataset', table: { format: 'classic' } },
];
const name = ({ logs = 'shared', table }: CreateOptions): string =>
  `${logs}${table?.format === 'classic' ? ` classic${table.bigEndian ? ' big-endian' : ''}` : ''}`;
const layouts = LAYOUTS.map((options) => [name(options), options] as const);

/** 40 flushes to datasets of several kinds: enough for tables and logs to merge. */
function fill(path: string, options: CreateOptions): void {
  const file = File.createSync(path, { publish: 'never', ...options });
  const a = file.createDataset('g/a', { dtype: 'float64', shape: [10, 10] });
  const b = file.createDataset('g/b', { dtype: 'int32', shape: [100], filters: ['shuffle', { deflate: 3 }] });
  const text = file.createDataset('h/text', { dtype: T.string(), shape: [6] });
  file.createDataset('c', { dtype: 'int16', shape: [5, 5] });
  const empty = file.createDataset('empty', { dtype: 'int8', shape: [] });
  for (let i = 0; i < 40; i++) {
    a.write(new Float64Array(10).fill(i), { start: [i % 10, 0], count: [1, 10] });
    b.write(new Int32Array(10).fill(i), { start: [(i % 10) * 10], count: [10] });
    const at = [
      [0, 0],
      [1, 2],
      [4, i % 5],
    ];
    file.dataset('c', 'int16').write(Int16Array.of(i, i + 1, i + 2), select.points(at));
    if (i % 7 === 0) text.write([`text ${i}`], { start: [i % 6], count: [1] });
    file.flushSync();
    if (i === 20) {
      file.delete('c');
      file.createDataset('c', { dtype: 'int16', shape: [5, 5] });
    }
  }
  empty.write(7);
  file.closeSync();
}

const contents = (path: string, options: { asOf?: number } = {}): unknown => {
  const file = File.openSync(path, options);
  const seen = ['g/a', 'g/b', 'h/text', 'c', 'empty'].map((dataset) =>
    Array.from(file.dataset(dataset).readSync() as []),
  );
  file.closeSync();
  return seen;
};

describe.each(layouts)('logs: %s', (_, options) => {
  const plain = newPath();
  fill(plain, {});

  test('a file has the same contents as with one log for all, in every state', async () => {
    const path = newPath();
    fill(path, options);
    expect(contents(path)).toEqual(contents(plain));
    for (const asOf of [1, 15, 16, 20, 33]) expect(contents(path, { asOf })).toEqual(contents(plain, { asOf }));
    expect(await verify(path)).toMatchObject({ sound: true, problems: [] });
  });

  test('it is remembered: what is appended goes to the same logs', async () => {
    const path = newPath();
    fill(path, options);
    const before = await dump(path, { header: true });
    const file = File.openSync(path, { mode: 'r+' });
    file.dataset('g/a', 'float64').write(new Float64Array(100).fill(5));
    file.createDataset('g/new', { dtype: 'int8', shape: [2] }).write([1, 2]);
    file.closeSync();
    const after = await dump(path, { header: true });
    expect(after.logs).toEqual(before.logs);
    expect(after.stores[0]?.tables).toEqual([]);
    const numbers = (shown: typeof before): number[] => shown.stores[0]?.numbered.map(({ number }) => number) ?? [];
    const added = options.logs === 'dataset' ? [6] : [];
    expect(numbers(after)).toEqual([...numbers(before), ...added]);
    const again = File.openSync(path);
    expect([...again.dataset('g/new', 'int8').readSync()]).toEqual([1, 2]);
    again.closeSync();
    expect(await verify(path)).toMatchObject({ sound: true });
  });

  test('tools take it', async () => {
    const path = newPath();
    fill(path, options);
    const [small, ordinary, sealed] = [newPath(), newPath(), newPath()];
    await compact(path, small);
    await replay(path, ordinary);
    copyFileSync(path, sealed);
    await seal(sealed);
    for (const other of [small, ordinary, sealed]) {
      expect(await diff(path, other)).toMatchObject({ same: true });
      expect(await verify(other)).toMatchObject({ sound: true });
    }
    expect((await list(small)).logs).toEqual((await list(path)).logs);
    expect((await stat(path)).logs).toEqual((await list(path)).logs);
    expect(statSync(small).size).toBeLessThan(statSync(path).size);
    const [{ tables }, dumped] = [await stat(path), await dump(path)];
    expect(tables.count).toBe(dumped.tables.length);
    const entries = dumped.tables.flatMap(({ sections }) => sections.flatMap((section) => section.entries));
    expect(entries.every(({ problem }) => problem === undefined || problem === 'the dataset was deleted')).toBe(true);
    expect(tables.forms.points.entries > 0).toBe(options.table?.format === 'classic');
    const forms = Object.entries(tables.forms).filter(([form]) => form !== 'record');
    expect(forms.reduce((sum, [, form]) => sum + form.entries, 0)).toBe(entries.length);
    // What was compacted can be appended to.
    const file = File.openSync(small, { mode: 'r+' });
    file.dataset('g/a', 'float64').write(new Float64Array(100).fill(9));
    file.closeSync();
    expect((contents(small) as number[][])[0]?.[50]).toBe(9);
  });

  test('it is published, and read after other programs have seen it', async () => {
    const path = newPath();
    fill(path, { ...options, publish: 'flush' });
    expect(contents(path)).toEqual(contents(plain));
    expect(await verify(path)).toMatchObject({ sound: true });
  });

  test('commit records are of version 2, which h5log 0.1 refuses by name', () => {
    const path = newPath();
    fill(path, options);
    const bytes = readFileSync(path);
    const versions = new Set<number>();
    for (let at = bytes.indexOf('H5LCMT\0'); at >= 0; at = bytes.indexOf('H5LCMT\0', at + 1))
      versions.add(bytes[at + 7] as number);
    expect([...versions]).toEqual([2]);
  });

  test('the original counts no tables', async () => {
    const path = newPath();
    fill(path, options);
    const { configuration } = await dump(path, { header: true });
    expect(configuration).toMatchObject({ tables: 0 });
  });
});

describe('a dataset that is deleted', () => {
  const numbersOf = (file: File): number[] => {
    const log = logOf(file);
    const { main } = log as NonNullable<typeof log>;
    return [...main.structure.now(main.everyNumbered()).keys()];
  };

  test('takes its log along', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { logs: 'dataset', publish: 'never' });
    for (const path of ['a', 'b']) file.createDataset(path, { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
    file.flushSync();
    expect(numbersOf(file)).toEqual([0, 1]);
    file.delete('a');
    file.flushSync();
    expect(numbersOf(file)).toEqual([1]);
    file.closeSync();
    const earlier = File.openSync(storage, { asOf: 1 });
    expect([...earlier.dataset('a', 'int8').readSync()]).toEqual([1, 2, 3]);
    earlier.closeSync();
  });

  test('takes the log of its group along if it was the last of it, wherever the others are', () => {
    const file = File.createSync(memoryStorage(), { logs: 'group', publish: 'never' });
    for (const path of ['g/a', 'g/b', 'c']) file.createDataset(path, { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
    file.move('g/b', 'moved');
    file.flushSync();
    expect(numbersOf(file)).toEqual([0, 2]);
    file.delete('g');
    file.flushSync();
    expect(numbersOf(file)).toEqual([0, 2]);
    expect([...file.dataset('moved', 'int8').readSync()]).toEqual([1, 2, 3]);
    file.delete('moved');
    file.flushSync();
    expect(numbersOf(file)).toEqual([2]);
    file.closeSync();
  });

  test('leaves a group whose next dataset begins the log anew', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { logs: 'group', publish: 'never' });
    file.createDataset('g/a', { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
    file.flushSync();
    file.delete('g/a');
    file.flushSync();
    file.createDataset('g/b', { dtype: 'int8', shape: [2] }).write([4, 5]);
    file.flushSync();
    expect([...file.dataset('g/b', 'int8').readSync()]).toEqual([4, 5]);
    file.closeSync();
    const again = File.openSync(storage);
    expect([...again.dataset('g/b', 'int8').readSync()]).toEqual([4, 5]);
    again.closeSync();
  });
});

test('a reader of one dataset reads the tables of its own log only', async () => {
  const path = newPath();
  const file = File.createSync(path, { logs: 'dataset', publish: 'never', table: { compress: false } });
  for (let d = 0; d < 50; d++) {
    const starts = Float64Array.from({ length: 2000 }, (_, i) => 2 * ((i * 7919) % 2000));
    file.createDataset(`d${d}`, { dtype: 'int8', shape: [4000] }).writeMany(new Int8Array(2000), starts, [1]);
  }
  file.closeSync();
  const { tables } = await dump(path, { onEntry: () => {} });
  const all = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  const bytes = readFileSync(path);
  const reader = await File.open(new Blob([bytes]));
  const opened = reader.storageStatistics().bytes;
  await reader.dataset('d7').read({ start: [0], count: [10] });
  const { bytes: read } = reader.storageStatistics();
  await reader.close();
  expect(read - opened).toBeLessThan(all / 5);
});

describe('options', () => {
  test("logs must be 'shared', 'group' or 'dataset'", () => {
    expect(() => File.createSync(memoryStorage(), { logs: 'each' as never })).toThrow(
      expect.objectContaining({ code: 'OPTION' }),
    );
  });

  test('an ordinary file has none', () => {
    expect(() => File.createSync(memoryStorage(), { connector: 'native', logs: 'dataset' })).toThrow(
      expect.objectContaining({ code: 'OPTION' }),
    );
  });
});

withOracle('python', 'numbered logs', () => {
  test.each(layouts)('%s: h5py opens every object, and makes a copy that is read but not appended to', (_, options) => {
    const path = newPath();
    fill(path, options);
    const script = `
import sys, h5py
with h5py.File(sys.argv[1], 'r') as f, h5py.File(sys.argv[2], 'w') as out:
    for key, value in f.attrs.items(): out.attrs.create(key, value, dtype=f.attrs.get_id(key).dtype)
    for key in f: f.copy(key, out)
`;
    const copy = newPath();
    expect(visitWithH5py([path])).toBeGreaterThan(8);
    pythonSync(script, [path, copy]);
    expect(contents(copy)).toEqual(contents(path));
    expect(() => File.openSync(copy, { mode: 'r+' })).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
