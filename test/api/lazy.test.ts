import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, type Group } from 'h5log';
import { memoryStorage, nodeStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../src/base/checksum.ts';
import { count } from '../counts.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { errorOf } from '../storage/scratch.ts';
import { startServer } from '../storage/server.ts';
import { temporaryDirectory } from '../temporary.ts';

const serve = await startServer();

const unloaded = (path: string): object =>
  expect.objectContaining({ code: 'UNSUPPORTED', message: `${path} is not loaded: await file.load('${path}') first` });

/** A log with groups in groups, and values of attributes that are in the heap. */
async function logOf(): Promise<{ storage: ReturnType<typeof memoryStorage>; file: File }> {
  const storage = memoryStorage();
  const file = await File.create(storage);
  for (const name of ['a', 'b']) {
    const group = file.createGroup(name);
    group.attributes.set('title', `group ${name}`);
    for (let i = 0; i < 3; i++) {
      const x = group.createDataset(`deep/x${i}`, { dtype: 'int32', shape: [4] });
      x.attributes.set('text', ['some', 'words']);
      x.write([i, i, i, i]);
    }
  }
  file.createSoftLink('short', '/a/deep/x1');
  await file.flush();
  return { storage, file };
}

describe('a log on a server', () => {
  test('is read while it grows: what a commit made visible never changes', async () => {
    const storage = memoryStorage();
    const writer = await File.create(storage);
    const x = writer.createDataset('x', { dtype: 'float64', shape: [100_000] });
    x.write(new Float64Array(100_000).fill(1));
    await writer.flush();
    const { site, url } = serve({ bytes: storage.bytes(), etag: '"1"' });
    const reader = await File.open(url, { lazy: true });
    await reader.load('x');
    x.write(new Float64Array(100_000).fill(2));
    await writer.flush();
    Object.assign(site, { bytes: storage.bytes(), etag: '"2"' });
    const first = await reader.dataset('x', 'float64').read();
    expect([first[0], first.at(-1)]).toEqual([1, 1]);
    expect(await reader.refresh()).toBe(true);
    const second = await reader.dataset('x', 'float64').read();
    expect([second[0], second.at(-1)]).toEqual([2, 2]);
    await reader.close();
    await writer.close();
  });
});

withOracle('python', 'a log to which h5py has added something', () => {
  test('is still read on demand: which datasets are in the log is known, whatever was loaded', async () => {
    const path = join(temporaryDirectory(), 'added.h5');
    const written = File.createSync(path, { publish: 'close' });
    // Too many for the pages that are read first.
    for (let i = 0; i < 2000; i++) written.createDataset(`g${i % 20}/d${i}`, { dtype: 'int32', shape: [2] });
    written.dataset('g7/d7').write([1, 2]);
    written.closeSync();
    const again = File.openSync(path, { mode: 'r+', publish: 'never' });
    again.dataset('g7/d7').write([3, 4]);
    again.closeSync();
    const change = "f = h5py.File(sys.argv[1], 'r+'); f.copy('g7/d7', 'copy'); f.close()";
    pythonSync(`import h5py, sys\n${change}`, [path]);
    const file = await File.open(new Blob([readFileSync(path)]), { lazy: true });
    await file.load('/g7/d7');
    expect(file.dataset('g7/d7').shape).toEqual([2]);
    expect(await file.dataset('g7/d7').read()).toEqual(Int32Array.of(3, 4));
    await file.load('/copy');
    expect(await file.dataset('copy').read()).toEqual(Int32Array.of(1, 2));
    expect(await file.refresh()).toBe(false);
    await file.close();
  });
});

describe('a file that is opened with lazy', () => {
  test('shows what was loaded, and names the call for what was not', async () => {
    const { storage } = await logOf();
    const { url } = serve({ bytes: storage.bytes() });
    for (const source of [url, new Blob([storage.bytes().slice()])]) {
      const file = await File.open(source, { lazy: true });
      expect([...file.keys()]).toEqual(['a', 'b', 'short']);
      expect(() => file.get('a')).toThrow(unloaded('/a'));
      expect(() => file.group('/a/deep')).toThrow(unloaded('/a/deep'));
      expect(() => file.has('b')).toThrow(unloaded('/b'));
      expect(() => [...file.children()]).toThrow(unloaded('/a'));
      expect(() => [...file.links()]).toThrow(unloaded('/a'));
      expect(file.get('c')).toBe(undefined);
      expect(await file.load('/a')).toBe(file);
      const a = file.group('a');
      expect(a.attributes.get('title')).toBe('group a');
      expect([...a.group('deep').keys()]).toEqual(['x0', 'x1', 'x2']);
      expect(() => a.get('deep/x0')).toThrow(unloaded('/a/deep/x0'));
      expect(() => file.get('b')).toThrow(unloaded('/b'));
      expect(await a.load('deep')).toBe(a);
      const x = a.dataset('deep/x2', 'int32');
      expect(x.attributes.get('text')).toEqual(['some', 'words']);
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      await file.close();
    }
  });

  test('loads as deep as it is told, and what soft links lead to', async () => {
    const { storage } = await logOf();
    const { url } = serve({ bytes: storage.bytes() });
    const file = await File.open(url, { lazy: true });
    await file.load('/b', { depth: 0 });
    expect([...file.group('b').keys()]).toEqual(['deep']);
    expect(() => file.group('b').get('deep')).toThrow(unloaded('/b/deep'));
    await file.load('short');
    expect([...(await file.dataset('short', 'int32').read())]).toEqual([1, 1, 1, 1]);
    expect(file.dataset('/a/deep/x1').attributes.size).toBe(1);
    await file.load('/', { depth: Infinity });
    for (const name of ['a', 'b'])
      for (const [, x] of file.group(`${name}/deep`).children()) expect(x?.attributes.get('text')).toHaveLength(2);
    await file.close();
  });

  test('loads together what is asked for together', async () => {
    const { storage } = await logOf();
    const { url } = serve({ bytes: storage.bytes(), delay: 2 });
    const file = await File.open(url, { lazy: true });
    const asked = ['/a/deep', '/b/deep', '/a', '/b', '/a/deep/x0', '/'];
    await Promise.all(asked.map((path) => file.load(path)));
    for (const path of asked) expect(file.get(path)?.path).toBe(path);
    await file.close();
  });

  test('is refused where it cannot be, and so are loads', async () => {
    const { storage } = await logOf();
    const { url } = serve({ bytes: storage.bytes() });
    for (const mode of ['r+', 'a'] as const)
      expect(await errorOf(() => File.open(memoryStorage(storage.bytes()), { mode, lazy: true }))).toMatchObject({
        code: 'OPTION',
      });
    expect(await errorOf(() => File.open(url, { lazy: 1 as never }))).toMatchObject({ code: 'OPTION' });
    const file = await File.open(url, { lazy: true });
    for (const depth of [-1, 0.5, Number.NaN, '1' as never])
      expect(await errorOf(() => file.load('a', { depth }))).toMatchObject({ code: 'OPTION' });
    expect(await errorOf(() => file.load('a', { deep: 1 } as never))).toMatchObject({ code: 'OPTION' });
    expect(await errorOf(() => file.load('a/nothing'))).toMatchObject({ code: 'NOT_FOUND', object: '/a/nothing' });
    const ended = AbortSignal.abort(new Error('enough'));
    expect(await errorOf(() => file.load('a', { signal: ended }))).toMatchObject({ message: 'enough' });
    await file.close();
  });

  test('on a disk and without lazy, everything is there at once', async () => {
    const { storage } = await logOf();
    const { url } = serve({ bytes: storage.bytes() });
    for (const file of [
      await File.open(url),
      await File.open(memoryStorage(storage.bytes()), { lazy: true }),
      File.openSync(memoryStorage(storage.bytes()), { lazy: true }),
    ]) {
      expect(file.group('a/deep').dataset('x1').attributes.get('text')).toHaveLength(2);
      expect(await file.load('a')).toBe(file);
      expect(await errorOf(() => file.load('nothing'))).toMatchObject({ code: 'NOT_FOUND' });
      await file.close();
    }
  });

  test('a log is followed: what was loaded is loaded of the next commit', async () => {
    const { storage, file: writer } = await logOf();
    const { site, url } = serve({ bytes: storage.bytes(), etag: '"1"' });
    const reader = await File.open(url, { lazy: true });
    await reader.load('/a/deep');
    const x = reader.dataset('/a/deep/x0', 'int32');
    writer.dataset('/a/deep/x0').write([7, 8, 9, 10]);
    writer.dataset('/a/deep/x0').attributes.set('text', 'other words');
    writer.group('/a/deep').createDataset('new', { dtype: 'int8', shape: [1] });
    await writer.flush();
    Object.assign(site, { bytes: storage.bytes(), etag: '"2"' });
    expect(await reader.refresh()).toBe(true);
    expect([...(await x.read())]).toEqual([7, 8, 9, 10]);
    expect(x.attributes.get('text')).toBe('other words');
    expect(reader.dataset('/a/deep/new').shape).toEqual([1]);
    expect(() => reader.get('b')).toThrow(unloaded('/b'));
    await reader.close();
  });
});

describe('storageStatistics', () => {
  test('counts requests, bytes and what was answered from memory, whatever the storage', async () => {
    const path = join(temporaryDirectory(), 'counted.h5');
    const writer = await File.create(path);
    const x = writer.createDataset('x', { dtype: 'int32', shape: [100_000] });
    const before = writer.storageStatistics();
    x.write(new Int32Array(100_000));
    await writer.flush();
    const after = writer.storageStatistics();
    expect(after.requests).toBeGreaterThan(before.requests);
    expect(after.bytes).toBeGreaterThanOrEqual(before.bytes + 400_000);
    await writer.close();
    const bytes = readFileSync(path);
    const { site, url } = serve({ bytes });
    for (const source of [path, memoryStorage(bytes), new Blob([bytes]), url, bytes]) {
      const file = await File.open(source);
      const opened = file.storageStatistics();
      expect(opened.requests).toBeGreaterThan(0);
      await file.dataset('x').read({ start: [0], count: [90_000] });
      const first = file.storageStatistics();
      expect(first.requests).toBeGreaterThan(opened.requests);
      expect(first.bytes).toBeGreaterThanOrEqual(opened.bytes + 300_000);
      if (source === url) expect(first.requests).toBe(site.asked.length);
      await file.dataset('x').read({ start: [99_999], count: [1] });
      await file.dataset('x').read({ start: [99_999], count: [1] });
      expect(file.storageStatistics().cached).toBeGreaterThan(first.cached);
      await file.close();
    }
  });
});

withOracle('python', 'lazy files of h5py', () => {
  const folder = temporaryDirectory();

  test.each(['earliest', 'latest'])('%s: old and dense groups, dense attributes, references', async (libver) => {
    const path = join(folder, `${libver}.h5`);
    pythonSync(
      `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver='${libver}') as f:
  many = f.create_group('many')
  for i in range(300):
    g = many.create_group('g%03d' % i)
    g.attrs['name'] = 'group %d' % i
  x = f.create_dataset('top/inner/x', data=np.arange(10))
  for i in range(40): x.attrs['a%02d' % i] = 'value %d' % i
  f['top'].attrs['to'] = many['g123'].ref
  f['top'].attrs['list'] = np.array([x.ref, f['many'].ref], dtype=h5py.ref_dtype)`,
      [path],
    );
    const { url } = serve({ bytes: readFileSync(path) });
    const [file, whole] = [await File.open(url, { lazy: true }), await File.open(path)];
    await file.load('top');
    expect(file.group('top').attributes.get('to')).toBe('/many/g123');
    expect(file.group('top').attributes.get('list')).toEqual(['/top/inner/x', '/many']);
    await file.load('top/inner');
    expect([...file.dataset('top/inner/x').attributes]).toEqual([...whole.dataset('top/inner/x').attributes]);
    await file.load('many');
    const names = (group: Group): unknown[] =>
      [...group.children()].map(([name, to]) => [name, to?.attributes.get('name')]);
    expect(names(file.group('many'))).toEqual(names(whole.group('many')));
    await Promise.all([file.close(), whole.close()]);
  });

  /** Two names that the trees of dense links cannot tell apart. */
  function sameHash(): [string, string] {
    const seen = new Map<number, string>();
    for (let i = 0; ; i++) {
      const name = `n${i}`;
      const hash = lookup3(new TextEncoder().encode(name));
      const other = seen.get(hash);
      if (other !== undefined) return [other, name];
      seen.set(hash, name);
    }
  }

  test.each(['earliest', 'latest'])('%s: one of very many links is found without the others', async (libver) => {
    const path = join(folder, `many-${libver}.h5`);
    const pair = sameHash();
    pythonSync(
      `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver='${libver}') as f:
  for i in range(3000): f['x%d' % (i * 7919 % 3000)] = i * 7919 % 3000
  f['ünïcödé'] = 1
  f['soft'] = h5py.SoftLink('/x17')
  f['x3'].attrs['to'] = f['x2999'].ref
  for name in sys.argv[2:]: f['twins/' + name] = name
  for i in range(50): f['twins/t%d' % i] = i`,
      [path, ...pair],
    );
    const { url } = serve({ bytes: readFileSync(path) });
    const open = (): Promise<File> => File.open(url, { lazy: true });
    const file = await open();
    expect(() => [...file.keys()]).toThrow(unloaded('/'));
    expect(() => file.get('x5')).toThrow(unloaded('/x5'));
    for (const i of [...Array.from({ length: 100 }, (_, k) => k * 30), 2999]) {
      await file.load(`x${i}`);
      expect(Number((await file.dataset(`x${i}`).read())[0])).toBe(i);
    }
    expect(file.storageStatistics().bytes).toBeGreaterThan(0);
    await file.load('soft');
    expect(Number((await file.dataset('soft').read())[0])).toBe(17);
    await file.load('ünïcödé');
    for (const missing of ['x3000', 'a', 'zzz', 'x', ''.padEnd(3000, 'x')]) {
      expect(await errorOf(() => file.load(missing))).toMatchObject({ code: 'NOT_FOUND' });
      expect(file.get(missing)).toBe(undefined);
    }
    expect(() => file.get('x4')).toThrow(unloaded('/x4'));
    for (const name of pair) {
      const other = await open();
      await other.load(`twins/${name}`);
      expect(await other.dataset(`twins/${name}`).read()).toEqual([name]);
      await other.close();
    }
    // References need paths: those of all objects on the way.
    await file.load('x3');
    expect(file.dataset('x3').attributes.get('to')).toBe('/x2999');
    const loaded = file.dataset('x30');
    await file.load('/');
    const whole = await File.open(path);
    expect([...file.keys()]).toEqual([...whole.keys()]);
    expect(Number((await loaded.read())[0])).toBe(30);
    expect(file.get('x4')?.kind).toBe('dataset');
    await Promise.all([file.close(), whole.close()]);
  });

  test.each(['earliest', 'latest'])(
    '%s, 10 GB over HTTP: a slice costs at most 12 requests and 2 MB',
    async (libver) => {
      const path = join(folder, `large-${libver}.h5`);
      // Room is reserved and hardly anything written, so that the file takes little of the disk.
      pythonSync(
        `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver='${libver}') as f:
  many = f.create_group('many')
  for i in range(2000):
    many.create_dataset('d%04d' % i, data=np.full(3, i)).attrs['unit'] = 'm'
  early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
  early.set_layout(h5py.h5d.CONTIGUOUS)
  early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
  early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
  space = h5py.h5s.create_simple((625000, 1000))
  flat = h5py.Dataset(h5py.h5d.create(f.id, b'contiguous', h5py.h5t.NATIVE_DOUBLE, space, early))
  flat[400000, 10:20] = np.arange(10)
  early.set_layout(h5py.h5d.CHUNKED)
  early.set_chunk((64, 512))
  for name, unlimited in (('chunked', False), ('growing', True)):
    most = (h5py.h5s.UNLIMITED, h5py.h5s.UNLIMITED) if unlimited else (320000, 1024)
    space = h5py.h5s.create_simple((320000, 1024), most)
    tiled = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.NATIVE_DOUBLE, space, early))
    tiled[200000:200003, 510:514] = np.arange(12).reshape(3, 4)
  f['last'] = np.arange(100)`,
        [path],
      );
      const storage = nodeStorage(path, 'r');
      const size = await storage.size();
      expect(size).toBeGreaterThan(10e9);
      const { url, site } = serve({ bytes: new Uint8Array(0), storage });
      const slices: [string, number[], number[], number[]][] = [
        ['contiguous', [400_000, 10], [1, 10], Array.from({ length: 10 }, (_, i) => i)],
        ['chunked', [200_000, 510], [3, 4], Array.from({ length: 12 }, (_, i) => i)],
        ['growing', [200_000, 510], [3, 4], Array.from({ length: 12 }, (_, i) => i)],
        ['last', [90], [3], [90, 91, 92]],
        ['many/d1234', [0], [3], [1234, 1234, 1234]],
      ];
      for (const [name, start, shape, values] of slices) {
        site.asked.length = 0;
        const file = await File.open(url, { lazy: true });
        await file.load(name);
        const data = await file.dataset(name).read({ start, count: shape }, { as: 'float64' });
        expect([...data]).toEqual(values);
        const { requests, bytes } = file.storageStatistics();
        console.log(`${libver}, ${name}: ${requests} requests, ${bytes} bytes of ${size}`);
        count('slices of 10 GB over HTTP', { slices: 1, requests, bytes });
        expect(site.asked.length).toBe(requests);
        expect(requests).toBeLessThanOrEqual(12);
        expect(bytes).toBeLessThanOrEqual(2_000_000);
        await file.close();
      }
      const file = await File.open(url);
      expect([...file.group('many').keys()]).toHaveLength(2000);
      const { requests, bytes } = file.storageStatistics();
      console.log(`${libver}, opened with all of its 2005 objects: ${requests} requests, ${bytes} bytes`);
      expect(requests).toBeLessThanOrEqual(20);
      await file.close();
      await storage.close();
    },
  );
});
