import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { fixtureBytes } from '../hdf5/fixture.ts';

// A page that only reads does not load the code that writes. What it calls must do without, and what it may not call must say why in the
// same words as on Node. Nothing in this file writes before the last test.

type H5log = typeof import('h5log');
type Netcdf = typeof import('h5log/netcdf');

const load = async <M>(platform: 'node' | 'browser', entry: string): Promise<M> =>
  (await import(join(root, 'dist', platform, `${entry}.js`))) as M;
const [node, page, nodeNetcdf, pageNetcdf, { memoryStorage }] = await Promise.all([
  load<H5log>('node', 'index'),
  load<H5log>('browser', 'index'),
  load<Netcdf>('node', 'netcdf'),
  load<Netcdf>('browser', 'netcdf'),
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

/** Notes what calls give, or throw. */
function notebook({ isH5LogError }: H5log): {
  found: string[];
  note: (what: string, call: () => unknown) => Promise<void>;
} {
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
  return { found, note };
}

/** What every member of the API gives, or throws. */
async function everything(h5log: H5log, bytes: Uint8Array): Promise<string[]> {
  const { Dataset, File, Group, select, T } = h5log;
  const { found, note } = notebook(h5log);
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

/** A file of netCDF, with a dimension that has no variable but is used by one. */
async function netcdfSample(connector: 'log' | 'native'): Promise<Uint8Array> {
  const storage = memoryStorage();
  const file = await node.File.create(storage, { connector });
  const nc = nodeNetcdf.netcdf(file);
  nc.attributes.set('title', 'a title');
  nc.createDimension('time', null);
  nc.createDimension('x', 3);
  nc.createVariable('time', { dtype: 'float64', dimensions: ['time'] }).dataset.append([0, 1]);
  nc.createVariable('t', { dtype: 'float32', dimensions: ['time', 'x'], fill: -999 }).dataset.append([1, 2, 3]);
  nc.createVariable('name', { dtype: node.T.string(), dimensions: ['x'] });
  nc.createVariable('bare', { dtype: 'int16', dimensions: [], fill: false });
  nc.createGroup('g').createVariable('u', { dtype: 'int64', dimensions: ['x'], attributes: { units: 'K' } });
  await file.close();
  return storage.bytes();
}

/** The same for netCDF. */
async function everythingOfNetcdf(h5log: H5log, { netcdf }: Netcdf, bytes: Uint8Array): Promise<string[]> {
  const { found, note } = notebook(h5log);
  const file = await h5log.File.open(bytes.slice());
  await note('classic', () => netcdf(file, { classic: true }));
  const root = netcdf(file);
  for (const group of [root, ...root.groups.values()]) {
    const { attributes, dimensions, variables } = group;
    const say = (what: string, call: () => unknown): Promise<void> => note(`${group.name} ${what}`, call);
    await say('dimensions', () => [...dimensions.values()].map(({ name, size, unlimited }) => [name, size, unlimited]));
    await say('attributes', () => [...attributes]);
    await say('attributes.set', () => attributes.set('new', 'text'));
    await say('attributes.delete', () => attributes.delete('title'));
    await say('createGroup', () => group.createGroup('new'));
    await say('createDimension', () => group.createDimension('new', 2));
    await say('unlimited', () => group.createDimension('new', null));
    await say('createVariable', () => group.createVariable('new', { dtype: 'int8', dimensions: [], fill: 1 }));
    for (const name of root.dimensions.keys()) {
      await say(`variable ${name}`, () => group.createVariable(name, { dtype: 'int8', dimensions: [name] }));
      await say(`variable of ${name}`, () => group.createVariable('new', { dtype: 'int8', dimensions: [name] }));
    }
    for (const [name, variable] of variables) {
      const tell = (what: string, call: () => unknown): Promise<void> => say(`${name} ${what}`, call);
      await tell('properties', () => [variable.dimensions, variable.shape, [...variable.attributes]]);
      await tell('read', () => variable.read());
      await tell('dimension', () => group.createDimension(name, 2));
      await tell('attributes.set', () => variable.attributes.set('new', 1));
      for (const fill of [variable.dataset.fill, 5, 'text'])
        await tell('fill', () => variable.attributes.set('_FillValue', fill as never));
      await tell('attributes.delete', () => variable.attributes.delete('units'));
    }
  }
  await file.close();
  await note('closed', () => root.variables.get('t')?.attributes.set('_FillValue', -999));
  return found;
}

test('a page that only reads netCDF refuses changes as Node does', async () => {
  for (const connector of ['log', 'native'] as const) {
    const bytes = await netcdfSample(connector);
    const expected = await everythingOfNetcdf(node, nodeNetcdf, bytes);
    expect(await everythingOfNetcdf(page, pageNetcdf, bytes), connector).toEqual(expected);
    expect(expected.join('\n')).toMatch(/READ_ONLY(.*\n)*.*CLOSED/);
  }
});

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
