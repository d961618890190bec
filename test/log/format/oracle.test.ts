import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, Group, select, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import h5wasm from 'h5wasm/node';
import { afterAll, expect, test } from 'vitest';
import { handleOf } from '../../../src/api/handle.ts';
import { h5dump, withOracle } from '../../oracles.ts';
import { some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { checkLogFile, readAsOriginal, type SeenFile, seenByH5py } from './check-log.ts';

const figures = { commits: 0, entries: 0, references: 0, compared: 0 };

afterAll(() => {
  process.stdout.write(
    `log oracle: ${Object.entries(figures)
      .map(([name, n]) => `${n} ${name}`)
      .join(', ')}\n`,
  );
});

/** A copy of the file as any process would find it now. */
type Keep = () => void;

/** Runs a program in memory; the bytes of the file at every commit. */
function commitsOf(
  program: (file: File, keep: Keep) => void,
  options: Parameters<typeof File.create>[1] = {},
): Uint8Array[] {
  const storage = memoryStorage();
  const images: Uint8Array[] = [];
  const file = File.createSync(storage, options);
  const keep = (): void => {
    file.flushSync();
    images.push(storage.bytes());
  };
  keep();
  program(file, keep);
  file.closeSync();
  images.push(storage.bytes());
  return images;
}

/** Every tool accepts every image, every rule holds, and a reader of the test's own finds what ours does. */
async function checkImages(name: string, images: readonly Uint8Array[]): Promise<SeenFile[]> {
  const folder = join(temporaryDirectory(), name);
  mkdirSync(folder);
  const paths = images.map((image, i) => {
    const path = join(folder, `${i}.h5`);
    writeFileSync(path, image);
    return path;
  });
  // One process for all of them: its exit code is not 0 if one is not accepted.
  for (let i = 0; i < paths.length; i += 50) h5dump('-A', ...paths.slice(i, i + 50));
  h5dump(paths.at(-1) as string);
  const seen = paths.length > 0 ? seenByH5py(paths) : [];
  await h5wasm.ready;
  paths.forEach((path, i) => {
    const image = images[i] as Uint8Array;
    const checked = checkLogFile(image, seen[i] as SeenFile);
    figures.commits++;
    figures.entries += checked.entries.length;
    figures.references += checked.entries.filter(({ flags }) => flags & 0x10).length;
    const wasm = new h5wasm.File(path, 'r');
    expect([...wasm.keys()].sort()).toEqual([...(seen[i] as SeenFile).links].sort());
    expect(Array.from(wasm.attrs._int_att?.value as Int32Array)).toEqual(checked.counts);
    wasm.close();
    const file = File.openSync(memoryStorage(image));
    for (const { id, path: stored } of checked.anchors.values()) {
      const raw = readAsOriginal(image, checked, id);
      if (!raw) continue;
      const shown = stored.replaceAll('/__', '/_');
      expect(
        Buffer.from(file.dataset(shown).readSync(undefined, { raw: true })).equals(raw),
        `${name} ${i}: ${shown}`,
      ).toBe(true);
      figures.compared += raw.length;
    }
    file.closeSync();
  });
  return seen;
}

withOracle(['h5dump', 'python'], 'the file at every commit', () => {
  const options = [true, false].flatMap((merge) =>
    [true, false].flatMap((encode) =>
      [true, false].flatMap((share) => [2, false].map((compress) => ({ merge, encode, share, compress }))),
    ),
  );
  for (const table of some(options, 'kinds of tables')) {
    const name = Object.entries(table)
      .map(([key, value]) => (value === false ? '' : key))
      .filter((key) => key !== '')
      .join('+');
    test(`with ${name || 'plain'} tables`, async () => {
      const images = commitsOf(everything, { table });
      await checkImages('everything', images);
    });
  }

  test('hundreds of flushes, with tables and logs merged', async () => {
    const images = commitsOf((file, keep) => {
      const a = file.createDataset('a', { dtype: 'int32', shape: [64], maxShape: [null] });
      const b = file.createDataset('b', { dtype: 'float64', shape: [8, 8], maxShape: [null, 8] });
      for (let i = 0; i < 400; i++) {
        a.write(Int32Array.of(i, i), { start: [(i * 7) % 63], count: [2] });
        const where = select.hyperslab({ start: [i % 8, 0], stride: [1, 2], count: [1, 4] });
        b.write(Float64Array.of(i, i, i, i), where);
        file.flushSync();
        if (i % 25 === 0 || (i > 250 && i < 262)) keep();
      }
    });
    const seen = await checkImages('tiers', images);
    const names = (seen.at(-1) as SeenFile).log;
    expect(names.length).toBeLessThan(80);
  });

  test('a compressed record entry is never the last of its table', async () => {
    const images = commitsOf(
      (file, keep) => {
        const d = file.createDataset('d', { dtype: 'uint8', shape: [2, 2000], maxShape: [null, 2000] });
        const cells = (record: number) => select.hyperslab({ start: [record, 0], stride: [1, 2], count: [1, 1000] });
        for (let record = 0; record < 2; record++) {
          d.write(new Uint8Array(1000).fill(record + 1), cells(record));
          d.write(
            new Uint8Array(500).fill(7),
            select.hyperslab({ start: [record, record], stride: [1, 4], count: [1, 500] }),
          );
          keep();
        }
      },
      { table: { compress: 2 } },
    );
    const seen = await checkImages('compressed', images);
    const { flags } = checkLogFile(images.at(-1) as Uint8Array, seen.at(-1) as SeenFile);
    // Multiple, compressed, record; the last of each table is not compressed.
    expect(flags.get(0x29)).toBeGreaterThan(0);
    expect(flags.get(0x21)).toBeGreaterThan(0);
  });

  test('the log group, anchors and attributes are named and typed as in the original', async () => {
    const [image] = commitsOf((file) => {
      file
        .createDataset('_x', { dtype: 'int16', shape: [2, 3], maxShape: [null, 3] })
        .write(1, { start: [1, 1], count: [1, 1] });
      file.createDataset('g/_y', { dtype: 'int16', shape: [] }).attributes.set('_FillValue', 1);
      file.createDataset('__z', { dtype: T.bigEndian('uint16'), shape: [0], chunks: [1], filters: [{ deflate: 1 }] });
    }).slice(-1);
    const seen = (await checkImages('names', [image as Uint8Array]))[0] as SeenFile;
    expect([...seen.links].sort()).toEqual(['_LOG', '___z', '__x', 'g']);
    expect(seen.root.map(({ name }) => name).sort()).toEqual(['_int_att', '_publish', '_token']);
    expect(seen.root.find(({ name }) => name === '_int_att')?.value).toEqual([3, 1, 1, 14, 1]);
    const anchors = seen.datasets.filter(({ path }) => !path.startsWith('/_LOG/'));
    expect(anchors.map(({ path }) => path)).toEqual(['/___z', '/__x', '/g/__y']);
    const numbers = (i: number, name: string): unknown =>
      anchors[i]?.attributes.find((attribute) => attribute.name === name)?.value;
    expect([numbers(1, '_ID'), numbers(1, '_dims'), numbers(1, '_mdims')]).toEqual([[0], [2, 3], [-1, 3]]);
    expect([numbers(2, '_ID'), numbers(2, '_dims'), numbers(2, '_mdims')]).toEqual([[1], [], []]);
    expect(anchors[2]?.attributes.map(({ name }) => name)).toContain('__FillValue');
    // The order in the header, which tools do not show.
    const file = File.openSync(memoryStorage(image as Uint8Array));
    expect([...handleOf(file.dataset('_x')).node.attributes.keys()].slice(0, 3)).toEqual(['_dims', '_mdims', '_ID']);
    file.closeSync();
  });
});

/** A bit of everything, with a commit after each. */
function everything(file: File, keep: Keep): void {
  const a = file.createDataset('a', { dtype: 'float64', shape: [6, 5], fill: -1 });
  const r = file.createDataset('g/r', { dtype: 'int32', shape: [3, 6, 5], maxShape: [null, 6, 5] });
  const q = file.createDataset('g/q', { dtype: 'int16', shape: [3, 6, 5], maxShape: [null, 6, 5] });
  const s = file.createDataset('_s', { dtype: T.bigEndian('float32'), shape: [] });
  const l = file.createDataset('l', { dtype: 'uint8', shape: [40], maxShape: [null] });
  keep();
  const rows = select.hyperslab({ start: [0, 0, 0], stride: [1, 2, 2], count: [1, 3, 3] });
  const cells = select.hyperslab({ start: [0, 0], stride: [2, 2], count: [3, 3] });
  const nine = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  for (let i = 0; i < 3; i++) {
    const record = select.hyperslab({ start: [i, 0, 0], stride: [1, 2, 2], count: [1, 3, 3] });
    r.write(nine, record);
    q.write(nine, record);
    r.write(nine, rows);
    q.write(nine, rows);
    a.write(nine, cells);
    a.write([1, 2, 3, 4, 5], { start: [i, 0], count: [1, 5] });
    s.write(i);
    s.write(i + 1);
    for (let k = 0; k < 5; k++) l.write(k, { start: [(i * 11 + k * 3) % 40], count: [1] });
    l.writeMany(Uint8Array.of(1, 2, 3, 4), [3, 3, 7, 1], [1]);
    keep();
  }
  const z = file.createDataset('z', {
    dtype: 'int32',
    shape: [10, 10],
    chunks: [4, 4],
    filters: ['shuffle', { deflate: 6 }, 'fletcher32'],
  });
  z.write(Int32Array.from({ length: 100 }, (_, i) => i));
  z.write(
    Int32Array.of(1, 2, 3),
    select.points([
      [9, 9],
      [0, 0],
      [5, 5],
    ]),
  );
  z.attributes.set('units', 'K');
  keep();
  r.resize([5, 6, 5]);
  r.write(nine, select.hyperslab({ start: [4, 0, 0], stride: [1, 2, 2], count: [1, 3, 3] }));
  keep();
  r.resize([2, 3, 5]);
  keep();
  r.resize([4, 6, 5]);
  keep();
  file.delete('a');
  keep();
  file.move('g/q', 'moved/q');
  file.createDataset('a', { dtype: 'int8', shape: [2] }).write([1, 2]);
  keep();
  // A selection of 200 blocks, which is compressed by default.
  const many = select.points(Array.from({ length: 20 }, (_, i) => [(i * 2) % 40]));
  l.write(new Uint8Array(20).fill(9), many);
  file.dataset('moved/q').write(nine, rows);
  keep();
  file.delete('g/r');
  for (let i = 0; i < 20; i++) {
    l.write(i, { start: [i], count: [1] });
    file.dataset('moved/q').write(i, { start: [0, 0, 0], count: [1, 1, 1] });
    keep();
  }
  expect(file.get('moved')).toBeInstanceOf(Group);
}
