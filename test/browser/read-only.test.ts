import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { fixtureBytes } from '../hdf5/fixture.ts';

// A page that only reads does not load the code that writes. What it calls must do without, and what it may not call must say why in the
// same words as on Node. Nothing in this file writes before the last test.

type H5log = typeof import('h5log');

const load = async <M>(platform: 'node' | 'browser', entry: string): Promise<M> =>
  (await import(join(root, 'dist', platform, `${entry}.js`))) as M;
const [node, page, { memoryStorage }] = await Promise.all([
  load<H5log>('node', 'index'),
  load<H5log>('browser', 'index'),
  load<typeof import('h5log/storage')>('browser', 'storage'),
]);

/** A log with every kind of dataset, published, and an ordinary file. */
async function samples(): Promise<[string, Uint8Array][]> {
  const { File, T } = node;
  const storage = memoryStorage();
  const file = await File.create(storage, { publish: 'close' });
  const group = file.createGroup('g');
  group.attributes.set('note', 'a text');
  const rows = file.createDataset('g/rows', { dtype: 'float32', shape: [4, 3], maxShape: [null, 3], fill: -1 });
  rows.attributes.set('range', Float64Array.of(0, 1));
  rows.write(
    Float32Array.from({ length: 6 }, (_, i) => i),
    { start: [1, 0], count: [2, 3] },
  );
  file.createDataset('texts', { dtype: T.string(), shape: [3] }).write(['a', 'b', 'c']);
  const packed = { dtype: 'int32', shape: [50], chunks: [8], filters: ['shuffle', { deflate: 3 }] } as const;
  file.createDataset('packed', packed).write(Int32Array.from({ length: 50 }, (_, i) => i * i));
  const record = T.compound({ id: 'int64', to: T.reference });
  file.createDataset('records', { dtype: record, shape: [2] }).write([
    { id: 1n, to: '/g/rows' },
    { id: 2n, to: '' },
  ]);
  file.createDataset('x', { dtype: 'float64', shape: [3] }).makeScale('x');
  file.dataset('g/rows').attachScale(1, file.dataset('x'));
  await file.flush();
  rows.append(Float32Array.of(7, 8, 9));
  await file.close();
  return [
    ['log', storage.bytes()],
    ...['chunk-indexes', 'dense-links', 'heaps', 'virtual'].map((name): [string, Uint8Array] => [
      name,
      fixtureBytes(name),
    ]),
  ];
}

/** What every member of the API gives, or throws. */
async function everything(
  { Dataset, File, Group, isH5LogError, select, T }: H5log,
  bytes: Uint8Array,
): Promise<string[]> {
  const found: string[] = [];
  const note = async (what: string, call: () => unknown): Promise<void> => {
    try {
      const result = await call();
      const shown = JSON.stringify(result, (_, value: unknown) =>
        typeof value === 'bigint'
          ? `${value}n`
          : ArrayBuffer.isView(value)
            ? Array.from(value as Uint8Array, String)
            : value,
      );
      found.push(`${what}: ${shown?.slice(0, 2000)}`);
    } catch (error) {
      if (!isH5LogError(error)) throw error;
      found.push(`${what}: ${error.code} ${error.message}`);
    }
  };
  for (const mode of ['open', 'openSync'] as const) {
    const file = await File[mode](bytes.slice());
    const paths = [...file.keys()];
    /** undefined for what leads into files that are not there. */
    const find = (path: string): unknown => {
      try {
        return file.get(path);
      } catch {
        return undefined;
      }
    };
    const group = paths.map(find).find((child) => child instanceof Group) as typeof file | undefined;
    await note('file', () => [file.pending, file.published, file.sequence, file.mode, file.connector, file.closed]);
    await note('commits', () =>
      file.commits().map(({ sequence, bytes: size, requests }) => [sequence, size, requests]),
    );
    await note('refresh', () => file.refresh());
    await note('refreshSync', () => file.refreshSync());
    await note('String', () => [String(file), String(group), file.path]);
    await note('links', () => [...file.links()].map(({ name, kind }) => [name, kind]));
    await note('datatype', () => file.datatype('none'));
    await note('load', async () => typeof (await file.load()));
    await note('flush', () => file.flush());
    await note('flushSync', () => file.flushSync());
    await note('publish', () => file.publish());
    await note('publishSync', () => file.publishSync());
    await note('createGroup', () => file.createGroup('new'));
    await note('createDataset', () => file.createDataset('new', { dtype: 'int8', shape: [1] }));
    await note('requireGroup', () => String(file.requireGroup(group?.path ?? 'none')));
    await note('createDatatype', () => file.createDatatype('new', T.string()));
    await note('createSoftLink', () => file.createSoftLink('new', '/x'));
    await note('createHardLink', () => file.createHardLink('new', paths[0] as string));
    await note('createExternalLink', () => file.createExternalLink('new', 'a', 'b'));
    await note('move', () => file.move(paths[0] as string, 'new'));
    await note('delete', () => file.delete(paths[0] as string));
    const inside = group ? [...group.keys()].map((name) => `${group.path}/${name}`) : [];
    for (const path of [...paths, ...inside]) {
      const dataset = find(path);
      if (!(dataset instanceof Dataset)) continue;
      const { dtype, shape, maxShape } = dataset;
      const say = (what: string, call: () => unknown): Promise<void> => note(`${path} ${what}`, call);
      await say('properties', () => [
        dtype,
        shape,
        maxShape,
        dataset.fill,
        dataset.chunks,
        dataset.filters,
        dataset.pipeline,
      ]);
      await say('more', () => [dataset.size, dataset.rank, dataset.published, dataset.space, String(dataset)]);
      await say('dimensions', () => dataset.dimensions.map(({ label, scales }) => [label, scales.map(String)]));
      await say('read', () => dataset.read());
      await say('readSync', () => dataset.readSync());
      await say('raw', () => dataset.readSync(undefined, { raw: true }));
      await say('as', () => dataset.readSync(undefined, { as: 'float64' }));
      await say('columns', () => dataset.readSync(undefined, { columns: true }));
      await say('points', () => dataset.readSync(select.points(shape.length > 0 ? [shape.map(() => 0)] : [])));
      await say('slab', () => dataset.read({ start: shape.map(() => 0), count: shape.map(() => 1) }));
      await say('readMany', () =>
        dataset.readManySync(
          shape.map(() => 0),
          shape.map(() => 1),
        ),
      );
      await say('pieces', async () => {
        let count = 0;
        for await (const { data } of dataset.pieces()) count += (data as ArrayLike<unknown>).length;
        return count;
      });
      await say('require', () => String(file.requireDataset(path, { dtype, shape, maxShape })));
      await say('require other', () => String(file.requireDataset(path, { dtype, shape: [...shape, 1] })));
      await say('write', () => dataset.write(new Uint8Array(dataset.size) as never));
      await say('write columns', () => dataset.write({}, undefined, { columns: true }));
      await say('writeMany', () => dataset.writeMany([], [], []));
      await say('append', () => dataset.append([]));
      await say('resize', () => dataset.resize([...shape]));
      await say('makeScale', () => dataset.makeScale('name'));
      await say('attachScale', () => dataset.attachScale(0, dataset));
      await say('detachScale', () => dataset.detachScale(0, dataset));
      await say('labelDimension', () => dataset.labelDimension(0, 'label'));
      const { attributes } = dataset;
      await say('attributes', () => [...attributes].map(([name, value]) => [name, value, attributes.describe(name)]));
      await say('attributes.set', () => attributes.set('new', 1));
      await say('attributes.delete', () => attributes.delete('new'));
    }
    await file.close();
    await note('closed', () => file.flush());
  }
  return found;
}

test('a page that only reads has all that it needs, and refuses the rest as Node does', async () => {
  for (const [name, bytes] of await samples()) {
    const expected = await everything(node, bytes);
    expect(await everything(page, bytes), name).toEqual(expected);
    expect(expected.length, name).toBeGreaterThan(40);
    expect(expected.join('\n'), name).toContain('READ_ONLY');
  }
});

test('blocking calls wait for nobody: they write once the code that writes was loaded', async () => {
  const { File } = page;
  const refused = (call: () => unknown): unknown => {
    try {
      return call();
    } catch (error) {
      return page.isH5LogError(error) ? `${error.code} ${error.message}` : error;
    }
  };
  const told = /^UNSUPPORTED .*await File\.create\(\) or await File\.open\(\) first/;
  const storage = memoryStorage();
  expect(refused(() => File.createSync(storage))).toMatch(told);
  const bytes = memoryStorage(fixtureBytes('chunk-indexes').slice().buffer);
  expect(refused(() => File.openSync(bytes, { mode: 'r+' }))).toMatch(told);
  const first = await File.create(storage);
  await first.close();
  using file = File.createSync(memoryStorage());
  file.createDataset('x', { dtype: 'int8', shape: [2] }).write([1, 2]);
  file.flushSync();
  expect(file.dataset('x').readSync()).toEqual(Int8Array.of(1, 2));
});
