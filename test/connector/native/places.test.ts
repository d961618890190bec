import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { H5LogError } from '../../../src/base/errors.ts';
import { loadLibrary, readyLibrary } from '../../../src/connector/native/library.ts';
import { NativeFile } from '../../../src/connector/native/native-file.ts';
import { memoryStorage } from '../../../src/storage/memory.ts';
import type { ByteStorage } from '../../../src/storage/storage.ts';
import { h5pyDescribe } from '../../interop/describe.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { codeOf, library, makeRegularFiles, plainData, withFile } from './regular.ts';

const plain = { dtype: 'int32', shape: [4], maxShape: [4], chunks: null, filters: [] } as const;

test('h5wasm is loaded once, and blocking calls find it then', async () => {
  expect(await loadLibrary()).toBe(library);
  expect(readyLibrary()).toBe(library);
});

test('a storage in memory holds a new file', () => {
  const storage = memoryStorage();
  const file = NativeFile.create(library, storage);
  file.createDataset('/d', plain);
  file.dataset('/d').write([1, 2, 3, 4]);
  file.createSoftLink('/s', '/d');
  expect(file.dataset('/s').read()).toEqual(Int32Array.of(1, 2, 3, 4));
  file.close();
  // What was got from a closed file can be read; nothing can be written.
  expect(file.dataset('/d').read()).toEqual(Int32Array.of(1, 2, 3, 4));
  expect(codeOf(() => file.dataset('/d').write([1, 2, 3, 4]))).toBe('CLOSED');
  const again = NativeFile.open(library, storage, 'r+');
  again.dataset('/d').write([9], { start: [1], count: [1] });
  again.close();
  const third = NativeFile.open(library, storage, 'r');
  expect(third.dataset('/d').read()).toEqual(Int32Array.of(1, 9, 3, 4));
  third.close();
});

test('what a storage throws is what the caller gets', () => {
  const storage = memoryStorage();
  const file = NativeFile.create(library, storage);
  file.createDataset('/d', { ...plain, shape: [100_000], maxShape: [100_000] });
  file.dataset('/d').write(new Int32Array(100_000).fill(5));
  file.close();
  const { blocking } = storage;
  if (!blocking) throw new Error('memory blocks');
  let broken = false;
  const failing: ByteStorage = {
    ...storage,
    blocking: {
      ...blocking,
      read: (into, offset) => {
        if (broken) throw new H5LogError('STORAGE', 'the disk is gone');
        return blocking.read(into, offset);
      },
    },
  };
  const reader = NativeFile.open(library, failing, 'r');
  const dataset = reader.dataset('/d');
  broken = true;
  expect(() => dataset.read()).toThrow('the disk is gone');
  broken = false;
  expect(dataset.read({ start: [99_999], count: [1] })).toEqual(Int32Array.of(5));
  reader.close();
});

test('what cannot be written throws: at once, at the flush or at the close, and the file can be given up', () => {
  for (const filters of [[], [{ deflate: 1 }]]) {
    for (const capacity of [3000, 30_000, 300_000]) {
      const storage = memoryStorage();
      const { blocking } = storage;
      if (!blocking) throw new Error('memory blocks');
      const small: ByteStorage = {
        ...storage,
        blocking: {
          ...blocking,
          write: (parts, offset) => {
            const end = offset + parts.reduce((sum, part) => sum + part.length, 0);
            if (end > capacity) throw new H5LogError('STORAGE', `no room beyond ${capacity}`);
            blocking.write(parts, offset);
          },
        },
      };
      const file = NativeFile.create(library, small);
      const data = Int32Array.from({ length: 100_000 }, (_, i) => (i * 7919) ^ (i << 13));
      expect(() => {
        file.createDataset('/d', { ...plain, shape: [100_000], maxShape: [100_000], chunks: [1000], filters });
        file.dataset('/d').write(data);
        file.flush();
      }).toThrow(`no room beyond ${capacity}`);
      file.discard();
      expect(file.closed).toBe(true);
    }
  }
});

test('a storage without a blocking half, or without write, is refused where it does not do', () => {
  const { blocking: _, ...patient } = memoryStorage();
  expect(codeOf(() => NativeFile.open(library, patient, 'r'))).toBe('UNSUPPORTED');
  const storage = memoryStorage();
  NativeFile.create(library, storage).close();
  const { write: __, ...fixed } = storage;
  expect(codeOf(() => NativeFile.open(library, fixed, 'r+'))).toBe('STORAGE');
  NativeFile.open(library, fixed, 'r').close();
});

test('a path that leads to nothing, or to no HDF5, throws what it is', () => {
  const folder = temporaryDirectory();
  expect(codeOf(() => NativeFile.open(library, join(folder, 'no.h5'), 'r'))).toBe('NOT_FOUND');
  writeFileSync(join(folder, 'text.h5'), 'this is no HDF5 file, although it is long enough to be looked at'.repeat(40));
  expect(codeOf(() => NativeFile.open(library, join(folder, 'text.h5'), 'r'))).toBe('FORMAT');
  NativeFile.create(library, join(folder, 'there.h5')).close();
  expect(codeOf(() => NativeFile.create(library, join(folder, 'there.h5'), true))).toBe('EXISTS');
  expect(codeOf(() => NativeFile.create(library, join(folder, 'no', 'where.h5')))).toBe('NOT_FOUND');
});

test('one writer at a time, and a new file takes the place of an old one without changing it', () => {
  const path = join(temporaryDirectory(), 'one.h5');
  const file = NativeFile.create(library, path);
  expect(codeOf(() => NativeFile.open(library, path, 'r+'))).toBe('LOCKED');
  expect(codeOf(() => NativeFile.create(library, path))).toBe('LOCKED');
  file.createDataset('/old', plain);
  file.dataset('/old').write([1, 2, 3, 4]);
  file.close();
  const reader = NativeFile.open(library, path, 'r');
  const second = NativeFile.create(library, path);
  second.createGroup('/new');
  expect(reader.dataset('/old').read()).toEqual(Int32Array.of(1, 2, 3, 4));
  expect([...reader.structure.root.links.keys()]).toEqual(['old']);
  expect([...second.structure.root.links.keys()]).toEqual(['new']);
  reader.close();
  second.close();
  expect(readdirSync(dirname(path))).toEqual(['one.h5']);
});

test('names outside ASCII, of files and of objects', () => {
  const path = join(temporaryDirectory(), 'größe 日本.h5');
  const file = NativeFile.create(library, path);
  file.createDataset('/ä/日本 😀', plain);
  file.dataset('/ä/日本 😀').write([1, 2, 3, 4]);
  file.close();
  withFile(path, (again) => expect(again.dataset('/ä/日本 😀').read()).toEqual(Int32Array.of(1, 2, 3, 4)));
});

withOracle('python', 'where regular files may be', () => {
  const { folder } = makeRegularFiles();
  const at = (name: string): string => join(folder, name);

  test('a file of h5py in memory reads the same; what needs other files is refused', () => {
    const seen = h5pyDescribe(at('layouts.h5'));
    const file = NativeFile.open(library, memoryStorage(readFileSync(at('layouts.h5'))), 'r');
    for (const path of ['/chunked', '/contiguous', '/five', '/compact', '/scalar text'])
      expect(plainData(file, path)).toEqual(seen[path]?.dataset?.values);
    expect(codeOf(() => file.dataset('/outside').read())).toBe('UNSUPPORTED');
    file.close();
    const virtual = NativeFile.open(library, memoryStorage(readFileSync(at('virtual.h5'))), 'r');
    expect(codeOf(() => virtual.dataset('/two files').read())).toBe('UNSUPPORTED');
    virtual.close();
    const links = NativeFile.open(library, memoryStorage(readFileSync(at('links.h5'))), 'r');
    expect(links.find('/out')).toBeUndefined();
    links.close();
  });

  test('data in another file that is not there throws', () => {
    const path = at('outside-gone.h5');
    pythonSync(
      "import h5py, sys\nf = h5py.File(sys.argv[1], 'w')\nf.create_dataset('d', (4,), 'f8', external=[(sys.argv[1] + '.gone', 0, 32)])",
      [path],
    );
    withFile(path, (file) => expect(codeOf(() => file.dataset('/d').read())).toBe('STORAGE'));
  });

  test('after closing objects can be read as long as the file is the same', () => {
    const path = at('moved.h5');
    copyFileSync(at('layouts.h5'), path);
    const file = NativeFile.open(library, path, 'r');
    const dataset = file.dataset('/chunked');
    const all = dataset.read();
    file.close();
    expect(dataset.read()).toEqual(all);
    copyFileSync(at('numbers.h5'), at('other.h5'));
    renameSync(at('other.h5'), path);
    expect(codeOf(() => dataset.read())).toBe('CLOSED');
  });

  test('a reader sees what another program wrote once it opens the file again', () => {
    const path = at('changing.h5');
    copyFileSync(at('layouts.h5'), path);
    const file = NativeFile.open(library, path, 'r');
    expect(file.dataset('/growing').read({ start: [0, 0], count: [1, 1] })).toEqual(Float64Array.of(0));
    pythonSync(
      "import h5py, sys\nf = h5py.File(sys.argv[1], 'r+')\nf['growing'].resize((25, 30))\nf['growing'][0, 0] = 77\nf['new'] = 1",
      [path],
    );
    file.reopen();
    expect(file.dataset('/growing').shape).toEqual([25, 30]);
    expect(file.dataset('/growing').read({ start: [0, 0], count: [1, 1] })).toEqual(Float64Array.of(77));
    expect(file.find('/new')?.node.kind).toBe('dataset');
    file.close();
  });

  test('an external link to the file itself, while it is written', () => {
    const path = at('own.h5');
    const file = NativeFile.create(library, path);
    file.createDataset('/d', plain);
    file.createExternalLink('/self', 'own.h5', '/d');
    file.dataset('/d').write([1, 2, 3, 4]);
    expect(file.dataset('/self').read()).toEqual(Int32Array.of(1, 2, 3, 4));
    file.dataset('/d').write([5, 6, 7, 8]);
    expect(file.dataset('/self').read()).toEqual(Int32Array.of(5, 6, 7, 8));
    file.close();
    expect(h5pyDescribe(path)['/d']?.dataset?.values).toEqual(['5', '6', '7', '8']);
  });
});

test('without h5wasm the error says how to get it', async () => {
  // In a copy of the module: this one has loaded it already.
  vi.resetModules();
  const fresh = await import('../../../src/connector/native/library.ts');
  expect(codeOf(() => fresh.readyLibrary())).toBe('UNSUPPORTED');
  const missing = await fresh
    .loadLibrary(() => Promise.reject(new Error("Cannot find package 'h5wasm'")))
    .catch((e) => e);
  expect(missing).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('npm install h5wasm') });
  const wrong = await fresh.loadLibrary(() => Promise.resolve({})).catch((e) => e);
  expect(wrong).toMatchObject({ code: 'UNSUPPORTED' });
});
