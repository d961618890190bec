import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { afterEach, describe, expect, test } from 'vitest';
import { handleOf, sessionOf } from '../../src/api/handle.ts';
import { temporaryDirectory } from '../temporary.ts';

const NAMES = [
  'H5VL_LOG_METADATA_MERGE',
  'H5VL_LOG_METADATA_SHARE',
  'H5VL_LOG_METADATA_ZIP',
  'H5VL_LOG_SEL_ENCODING',
  'H5VL_LOG_IDX_BSIZE',
  'HDF5_VOL_CONNECTOR',
];

afterEach(() => {
  for (const name of NAMES) delete process.env[name];
});

/** The configuration bits that a file of these options is written with. */
function config(table?: { encode?: boolean; share?: boolean; compress?: boolean }): number {
  const file = File.createSync(memoryStorage(), table ? { table } : {});
  const counts = sessionOf(file).log?.main.counts;
  file.closeSync();
  return counts?.config ?? -1;
}

/** How large the table of a few hundred blocks gets. */
function tableBytes(): number {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  for (const name of ['a', 'b']) {
    const dataset = file.createDataset(name, { dtype: 'int8', shape: [400, 10] });
    for (let i = 0; i < 400; i += 2) dataset.write(new Int8Array(3), { start: [i, 1], count: [1, 3] });
  }
  file.flushSync();
  const size = sessionOf(file).log?.main.state.tables.reduce((sum, item) => sum + item.size, 0) ?? 0;
  file.closeSync();
  return size;
}

describe('the environment', () => {
  test('is followed where no option is given', () => {
    expect(config()).toBe(0x2 | 0x4 | 0x8);
    process.env.H5VL_LOG_METADATA_SHARE = '0';
    expect(config()).toBe(0x2 | 0x4);
    process.env.H5VL_LOG_SEL_ENCODING = 'canonical';
    expect(config()).toBe(0x4);
    process.env.H5VL_LOG_METADATA_ZIP = '0';
    expect(config()).toBe(0);
  });

  test('gives way to options', () => {
    process.env.H5VL_LOG_METADATA_SHARE = '0';
    process.env.H5VL_LOG_METADATA_ZIP = '0';
    expect(config({ share: true, compress: true, encode: false })).toBe(0x4 | 0x8);
  });

  test('each setting makes the table larger when it is off', () => {
    const best = tableBytes();
    process.env.H5VL_LOG_METADATA_ZIP = '0';
    const unzipped = tableBytes();
    process.env.H5VL_LOG_METADATA_SHARE = '0';
    const unshared = tableBytes();
    process.env.H5VL_LOG_SEL_ENCODING = 'canonical';
    const canonical = tableBytes();
    process.env.H5VL_LOG_METADATA_MERGE = '0';
    const single = tableBytes();
    expect([best, unzipped, unshared, canonical, single]).toEqual(
      [best, unzipped, unshared, canonical, single].sort((a, b) => a - b),
    );
    expect(new Set([best, unzipped, unshared, canonical, single]).size).toBe(5);
  });

  test('a limit for the index is kept, and a malformed one refused', async () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'int32', shape: [1000] });
    for (let i = 0; i < 1000; i += 2) dataset.write([i], { start: [i], count: [1] });
    file.closeSync();
    process.env.H5VL_LOG_IDX_BSIZE = '100';
    const reader = await File.open(storage);
    const found = reader.dataset('x', 'int32');
    expect([...(await found.read({ start: [500], count: [4] }))]).toEqual([500, 0, 502, 0]);
    expect(sessionOf(found).logDataset(handleOf(found).node, '/x')?.index).toBeNull();
    process.env.H5VL_LOG_IDX_BSIZE = 'much';
    await expect(File.open(storage)).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('a variable that cannot be used leaves no lock behind', () => {
    const folder = temporaryDirectory();
    const path = join(folder, 'a.h5');
    File.createSync(path).closeSync();
    process.env.H5VL_LOG_IDX_BSIZE = 'much';
    expect(() => File.openSync(path, { mode: 'r+' })).toThrow('H5VL_LOG_IDX_BSIZE must be a number of bytes');
    expect(() => File.createSync(path)).toThrow('H5VL_LOG_IDX_BSIZE must be a number of bytes');
    delete process.env.H5VL_LOG_IDX_BSIZE;
    File.openSync(path, { mode: 'r+' }).closeSync();
    expect(readdirSync(folder)).toEqual(['a.h5']);
  });

  test('names of other connectors mean nothing', () => {
    process.env.HDF5_VOL_CONNECTOR = 'pass_through under_vol=0;under_info={}';
    expect(config()).toBe(0xe);
    process.env.HDF5_VOL_CONNECTOR = 'LOG under_vol=0;under_info={}';
    expect(config()).toBe(0xe);
  });
});
