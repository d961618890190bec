import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, type Group } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { fullType } from '../../../src/dtype/model.ts';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { type ExpectedFile, type ExpectedObject, expectedValues, makeCorpus, valuesOf } from './corpus.ts';

const folder = temporaryDirectory();

withOracle('python', 'ordinary files of h5py', () => {
  const corpus = makeCorpus(folder);

  test('are at least 300', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(300);
  });

  describe('are read with the values that h5py sees', () => {
    test.each(some(corpus, 'ordinary corpus').map((file) => [file.file, file] as const))(
      '%s',
      async (name, expected) => {
        const path = join(folder, name);
        const file = await File.open(path);
        const blocking = File.openSync(path);
        for (const object of expected.objects) await compare(file, blocking, object);
        await compareLinks(file, expected);
        await file.close();
        blocking.closeSync();
        count('ordinary files', {
          files: 1,
          datasets: expected.objects.filter(({ kind }) => kind === 'dataset').length,
          values: expected.objects.reduce((sum, { values }) => sum + (values?.length ?? 0), 0),
        });
      },
    );
  });
});

withOracle('python', 'data in other files', () => {
  const inside = temporaryDirectory();
  const path = join(inside, 'external-3-latest.h5');
  const refused = (code: string, file: File): void => {
    expect(() => file.dataset('external').readSync()).toThrow(expect.objectContaining({ code }));
    file.closeSync();
  };

  test('is read only by a path, if it is there, and if that is allowed', () => {
    makeCorpus(inside, 'external-3-latest');
    File.openSync(path).dataset('external').readSync();
    refused('UNSUPPORTED', File.openSync(path, { external: false }));
    refused('UNSUPPORTED', File.openSync(memoryStorage(readFileSync(path))));
    for (const name of readdirSync(inside)) if (name.endsWith('.raw')) rmSync(join(inside, name));
    refused('STORAGE', File.openSync(path));
  });
});

withOracle('python', 'a fill value of variable length', () => {
  test('is in the heap, and found there', async () => {
    const path = join(temporaryDirectory(), 'fill.h5');
    pythonSync(
      `import h5py, sys
with h5py.File(sys.argv[1], 'w') as f:
  f.create_dataset('filled', (3,), dtype=h5py.string_dtype(), fillvalue='nothing')`,
      [path],
    );
    for (const file of [File.openSync(path), await File.open(new Blob([readFileSync(path)]))]) {
      const dataset = file.dataset('filled');
      expect(dataset.shape).toEqual([3]);
      expect(dataset.fill).toBe('nothing');
      expect(await dataset.read()).toEqual(['nothing', 'nothing', 'nothing']);
      await file.close();
    }
  });
});

withOracle('python', 'reads that are under way together', () => {
  test('do not get into one another', async () => {
    const path = join(temporaryDirectory(), 'together.h5');
    pythonSync(
      `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
  data = np.arange(1000 * 1000, dtype='i4').reshape(1000, 1000)
  f['contiguous'] = data
  f.create_dataset('chunked', data=data, chunks=(1000, 1000))`,
      [path],
    );
    const file = await File.open(path);
    for (const name of ['contiguous', 'chunked']) {
      const dataset = file.dataset(name, 'int32');
      const columns = Array.from({ length: 20 }, (_, i) => i * 50);
      const read = (column: number) => dataset.read({ start: [0, column], count: [100, 7] });
      const together = await Promise.all(columns.map(read));
      together.forEach((values, i) => {
        const expected = Int32Array.from({ length: 700 }, (_, k) => Math.floor(k / 7) * 1000 + i * 50 + (k % 7));
        expect(values, `${name}, column ${i * 50}`).toEqual(expected);
      });
    }
    await file.close();
  });
});

async function compare(file: File, blocking: File, expected: ExpectedObject): Promise<void> {
  const { path, kind } = expected;
  const where = `${file.path} ${path}`;
  if (kind === 'datatype') {
    const { dtype } = file.datatype(path);
    expect(fullType(dtype).class, where).toBe(expected.type?.class);
    return;
  }
  const object = path === '/' ? file : file.get(path);
  expect(object?.kind, where).toBe(kind);
  for (const attribute of expected.attributes) {
    const { attributes } = object as Group | Dataset;
    const described = attributes.describe(attribute.name);
    expect(described?.shape ?? null, `${where} @${attribute.name}`).toEqual(attribute.shape);
    const value = attributes.get(attribute.name);
    if (attribute.shape === null || !described) continue;
    const list = attribute.shape.length === 0 ? [value] : (value as ArrayLike<unknown>);
    expect(valuesOf(described.dtype, list), `${where} @${attribute.name}`).toEqual(expectedValues(attribute.values));
  }
  if (kind !== 'dataset') return;
  const dataset = object as Dataset;
  const { shape = null, raw, maxShape, chunks } = expected;
  const values = expectedValues(expected.values ?? []);
  expect(dataset.space, where).toBe(shape === null ? 'null' : shape.length === 0 ? 'scalar' : 'simple');
  expect(dataset.shape, where).toEqual(shape ?? []);
  if (expected.filters)
    expect(dataset.pipeline, where).toEqual(
      expected.filters.map(({ id, parameters, optional }) => expect.objectContaining({ id, parameters, optional })),
    );
  if (maxShape) expect(dataset.maxShape, where).toEqual(maxShape.map((size) => (size === -1 ? null : size)));
  if (expected.layout === 'chunked') expect(dataset.chunks, where).toEqual(chunks);
  expect(valuesOf(dataset.dtype, (await dataset.read()) as ArrayLike<unknown>), where).toEqual(values);
  const again = blocking.dataset(path);
  expect(valuesOf(again.dtype, again.readSync() as ArrayLike<unknown>), where).toEqual(values);
  if (raw !== undefined)
    expect(Buffer.from(again.readSync({}, { raw: true })).toString('base64'), `${where} raw`).toBe(raw);
  if (!shape || shape.length === 0 || values.length === 0) return;
  // A box out of the middle.
  const start = shape.map((size) => Math.floor(size / 3));
  const part = shape.map((size, d) => Math.max(1, Math.floor((size - (start[d] as number)) / 2)));
  const box = valuesOf(dataset.dtype, (await dataset.read({ start, count: part })) as ArrayLike<unknown>);
  expect(box, `${where} box`).toEqual(boxOf(values, shape, start, part));
}

function boxOf(
  values: readonly unknown[],
  shape: readonly number[],
  start: readonly number[],
  part: readonly number[],
): unknown[] {
  const total = part.reduce((product, size) => product * size, 1);
  return Array.from({ length: total }, (_, i) => {
    let rest = i;
    let at = 0;
    let stride = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      at += ((rest % (part[d] as number)) + (start[d] as number)) * stride;
      rest = Math.floor(rest / (part[d] as number));
      stride *= shape[d] as number;
    }
    return values[at];
  });
}

async function compareLinks(file: File, { links, file: name }: ExpectedFile): Promise<void> {
  for (const { path, kind, dangling, dataset } of links) {
    const found = file.get(path);
    const where = `${name} ${path}`;
    if (dangling) expect(found, where).toBeUndefined();
    else expect(found?.kind, `${where} ${kind}`).toBeDefined();
    if (!dataset || found?.kind !== 'dataset') continue;
    expect(valuesOf(found.dtype, (await found.read()) as ArrayLike<unknown>), where).toEqual(expectedValues(dataset));
  }
}
