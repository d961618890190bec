import { join } from 'node:path';
import { type Dataset, File, type H5LogError, isH5LogError, select, T } from 'h5log';
import { mpi } from 'h5log/mpi';
import { httpStorage, memoryStorage } from 'h5log/storage';
import { runThreads } from 'h5log/threads';
import * as tools from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const tempPath = (name: string): string => join(temporaryDirectory(), name);

/** The call as JavaScript makes it, where no compiler refuses unknown names. */
type Loose = (...args: unknown[]) => unknown;

/** The error of a call that must be refused with OPTION, whether it throws or rejects. */
async function refusal(call: () => unknown): Promise<string> {
  try {
    const result = call();
    if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result) {
      for await (const _ of result as AsyncIterable<unknown>);
    } else await result;
  } catch (error) {
    expect(isH5LogError(error, 'OPTION'), String(error)).toBe(true);
    return (error as H5LogError).message;
  }
  throw new Error('was accepted');
}

function openFile(): { file: File; dataset: Dataset } {
  const file = File.createSync(memoryStorage());
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [4, 4], maxShape: [null, 4] });
  return { file, dataset: dataset as unknown as Dataset };
}

describe('unknown options are refused', () => {
  test('in File.create and File.open, and their blocking forms', async () => {
    const path = tempPath('options.h5');
    await (await File.create(path)).close();
    for (const name of ['create', 'createSync'] as const) {
      const call = File[name] as unknown as Loose;
      expect(await refusal(() => call.call(File, path, { exlusive: true }))).toMatch(/"exlusive".*mean exclusive/);
      expect(await refusal(() => call.call(File, path, { table: { compres: true } }))).toMatch(/"compres".*compress/);
      expect(await refusal(() => call.call(File, path, { connector: 'native', exlusive: true }))).toMatch(/exclusive/);
    }
    for (const name of ['open', 'openSync'] as const) {
      const call = File[name] as unknown as Loose;
      expect(await refusal(() => call.call(File, path, { Mode: 'r+' }))).toMatch(/"Mode".*mean mode/);
      expect(await refusal(() => call.call(File, path, { connector: 'native', Mode: 'r+' }))).toMatch(/mean mode/);
      expect(await refusal(() => call.call(File, path, { mode: 'w' }))).toMatch(/File\.create/);
    }
  });

  test('and do no harm: the file that was there is still there', async () => {
    const path = tempPath('options.h5');
    const file = await File.create(path);
    file.createDataset('x', { dtype: 'int8', shape: [3] });
    await file.close();
    await refusal(() => (File.create as unknown as Loose).call(File, path, { overwrite: true }));
    await using again = await File.open(path, { mode: 'r+' });
    expect([...again.keys()]).toEqual(['x']);
  });

  test.each([
    ['maxshape', [null], 'did you mean maxShape?'],
    ['max_shape', [null], 'did you mean maxShape?'],
    ['compression', 'gzip', 'use filters: [{ deflate: 6 }]'],
    ['compression_opts', 9, 'use filters: [{ deflate: 6 }]'],
    ['fillvalue', 1, 'use fill'],
    ['data', [1, 2], 'use dataset.write(data)'],
    ['shuffle', true, "use filters: ['shuffle', { deflate: 6 }]"],
    ['chunk', [2], 'did you mean chunks?'],
    ['quux', 1, 'there is dtype, shape, maxShape, fill, chunks, filters, attributes'],
  ])('in createDataset: %s', async (name, value, advice) => {
    const { file } = openFile();
    const call = file.createDataset as unknown as Loose;
    const message = await refusal(() => call.call(file, 'y', { dtype: 'int8', shape: [2], [name]: value }));
    expect(message).toBe(`createDataset has no option "${name}"; ${advice}`);
    expect(file.has('y')).toBe(false);
  });

  test('in filters', async () => {
    const { file } = openFile();
    const filters = [{ deflate: 6, level: 3 }] as never;
    expect(await refusal(() => file.createDataset('y', { dtype: 'int8', shape: [2], filters }))).toMatch(/level/);
  });

  test('in attributes.set', async () => {
    const { file } = openFile();
    const set = file.attributes.set as Loose;
    expect(await refusal(() => set.call(file.attributes, 'a', 1, { type: 'int8' }))).toMatch(/use dtype/);
    expect(file.attributes.has('a')).toBe(false);
  });

  test('in reads and writes', async () => {
    const { dataset } = openFile();
    const d = dataset as unknown as Record<string, Loose>;
    const call = (name: string, ...args: unknown[]): unknown => (d[name] as Loose).apply(d, args);
    const box = { start: [0, 0], count: [1, 2] };
    const data = new Float64Array(2);
    expect(await refusal(() => call('write', data, box, { coppy: false }))).toMatch(/mean copy/);
    expect(await refusal(() => call('writeMany', data, [0, 0], [1, 2], { copies: false }))).toMatch(/copy/);
    expect(await refusal(() => call('read', box, { inot: data }))).toMatch(/mean into/);
    expect(await refusal(() => call('readSync', box, { Raw: true }))).toMatch(/mean raw/);
    expect(await refusal(() => call('readMany', [0, 0], [1, 2], { sginal: 1 }))).toMatch(/mean signal/);
    expect(await refusal(() => call('write', data, box, { memory: { shape: [2], were: {} } }))).toMatch(/where/);
    expect(await refusal(() => call('read', box, { memory: { size: [2] } }))).toMatch(/memory has no option "size"/);
    expect(await refusal(() => call('write', data, box, 5))).toMatch(/object/);
  });

  test('in selections', async () => {
    const { dataset } = openFile();
    const data = new Float64Array(4);
    for (const slab of [
      { start: [0, 0], counts: [1, 4] },
      { start: [0, 0], count: [1, 4], strides: [1, 1] },
      { start: [0, 0], count: [1, 4], blocks: [1, 1], stride: [1, 1] },
    ]) {
      const where = slab as object;
      expect(await refusal(() => dataset.write(data, where))).toMatch(/a slab has no option .*did you mean/);
      expect(await refusal(() => dataset.read(where))).toMatch(/did you mean/);
      expect(await refusal(() => select.hyperslab(where))).toMatch(/did you mean/);
      expect(await refusal(() => select.all().and(where))).toMatch(/did you mean/);
    }
  });

  test('in T', async () => {
    expect(await refusal(() => T.string({ size: 5 } as never))).toMatch(/T\.string has no option "size"/);
    expect(await refusal(() => T.string({ padding: 'space' } as never))).toMatch(/pad/);
    const layout = { offsets: { a: 0 }, sizes: 8 } as never;
    expect(await refusal(() => T.compound({ a: 'int8' }, layout))).toMatch(/mean size/);
  });

  test('in watch', async () => {
    const { file } = openFile();
    expect(await refusal(() => file.watch({ intervall: 5 } as never))).toMatch(/mean interval/);
  });

  test('in runThreads, mpi and httpStorage', async () => {
    const module = new URL('./none.ts', import.meta.url);
    expect(await refusal(() => runThreads(1, module, 0, { timout: 5 } as never))).toMatch(/mean timeout/);
    expect(await refusal(() => mpi({ libary: 'x' } as never))).toMatch(/mean library/);
    expect(await refusal(() => httpStorage('http://localhost/x', { header: {} } as never))).toMatch(/mean headers/);
  });

  test.each([
    ['list', 1, 'recursiv', 'recursive'],
    ['dump', 1, 'headers', 'header'],
    ['stat', 1, 'data_set', 'dataset'],
    ['plotBlocks', 1, 'datset', 'dataset'],
    ['verify', 1, 'repairto', 'repairTo'],
    ['seal', 1, 'too', 'to'],
    ['demo', 1, 'rank', 'ranks'],
    ['replay', 2, 'thread', 'threads'],
    ['compact', 2, 'checksums', 'checksum'],
    ['diff', 2, 'relativ', 'relative'],
    ['differencesOf', 2, 'relativ', 'relative'],
    ['datasetLines', 1, 'heder', 'header'],
    ['datasetJson', 1, 'heder', 'header'],
  ] as const)('in tools: %s', async (name, paths, wrong, right) => {
    const path = tempPath('tool.h5');
    const file = await File.create(path);
    file.createDataset('x', { dtype: 'int8', shape: [3] });
    await file.close();
    const given = paths === 1 ? [path] : [path, tempPath('other.h5')];
    const all = { ...tools } as unknown as Record<string, Loose>;
    const options = { datasets: ['/x'], [wrong]: true };
    if (!name.startsWith('dataset')) delete (options as { datasets?: unknown }).datasets;
    const message = await refusal(() => all[name]?.(...given, options));
    expect(message).toBe(`${name} has no option "${wrong}"; did you mean ${right}?`);
  });
});

describe('options that are right', () => {
  test('may be undefined', () => {
    const { file, dataset } = openFile();
    file.createDataset('y', { dtype: 'int8', shape: [2], chunks: undefined } as never);
    dataset.write(new Float64Array(16), undefined, { copy: undefined } as never);
    expect(file.pending.requests).toBe(1);
  });

  test('may be inherited, or come without a prototype', () => {
    const { dataset } = openFile();
    dataset.write(new Float64Array(16), Object.create(null), Object.create({ copy: true }));
    expect(dataset.readSync(Object.assign(Object.create(null), { start: [3, 3] }))).toHaveLength(1);
  });
});
