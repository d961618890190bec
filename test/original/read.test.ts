import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, type H5LogError } from 'h5log';
import { describe, expect, test } from 'vitest';
import { handleOf, sessionOf } from '../../src/api/handle.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { contentsExpected, contentsOf, expectedOf, folder, hex, misread, readable, withSubfiles } from './fixtures.ts';
import { i32 } from './spelled.ts';

const raw = (file: File, dataset: string): string => hex(file.dataset(dataset).readSync(undefined, { raw: true }));

describe('a file of the original', () => {
  test.each(readable)('%s reads as it was written', (name) => {
    const file = File.openSync(join(folder, name));
    expect(contentsOf(file)).toEqual(contentsExpected(expectedOf(name)));
    file.closeSync();
  });

  test('there are 59 that it reads, two of them with subfiles, and 4 that it cannot read', () => {
    expect(readable).toHaveLength(59);
    expect(withSubfiles).toHaveLength(2);
    expect(misread).toHaveLength(4);
  });
});

describe('what the original writes and cannot read itself', () => {
  const allOf = (name: string): void => {
    const path = join('misread', `${name}.h5`);
    const file = File.openSync(join(folder, path));
    for (const [dataset, { hex: bytes }] of Object.entries(expectedOf(path).datasets)) {
      expect(raw(file, dataset), dataset).toBe(bytes);
    }
    file.closeSync();
  };

  test('deflated requests of datasets whose filters were lost', () => {
    allOf('deflate_1r');
    const file = File.openSync(join(folder, 'misread/deflate_1r.h5'));
    for (const [, dataset] of file.children()) if (dataset?.kind === 'dataset') expect(dataset.filters).toEqual([]);
    file.closeSync();
  });

  test('encoded counts that span an inner dimension', () => allOf('encfull_1r'));

  test('a file written in pass-through mode, also after an append has taken the mode off', () => {
    allOf('passthru_ndims_2r');
    const path = join(temporaryDirectory(), 'passthru.h5');
    cpSync(join(folder, 'misread/passthru_ndims_2r.h5'), path);
    const file = File.openSync(path, { mode: 'r+' });
    expect((sessionOf(file).log?.main.counts.config ?? 0) & 0x010).toBe(0x010);
    const before = contentsOf(file);
    file.attributes.set('seen', 1);
    file.closeSync();
    const again = File.openSync(path);
    expect((sessionOf(again).log?.main.counts.config ?? 0) & 0x010).toBe(0);
    expect(contentsOf(again).datasets).toEqual(before.datasets);
    again.closeSync();
  });

  test('merged entries of which one can be read in two ways: then the file is refused, whichever dataset is asked for', () => {
    const name = join('misread', 'merge_enc_mix_2r.h5');
    const file = File.openSync(join(folder, name));
    const found = Object.keys(expectedOf(name).datasets).map((dataset) => {
      try {
        return raw(file, dataset);
      } catch (error) {
        return `${(error as H5LogError).code}: ${(error as H5LogError).message.replace(/ \(at byte.*/, '')}`;
      }
    });
    file.closeSync();
    // In /d: 0 3 5 2 1 3 2 1 for 7 elements: starts 0 3 5 with counts 2 1 3 and 2 + 1, or starts 0 3 5 2 with counts 1 3 2 1.
    const reason =
      'FORMAT: an entry written in merge mode cannot be decoded: its 4 blocks can be read in more than one way';
    expect(found).toEqual([reason, reason, reason, reason, reason]);
  });
});

describe('references within one record', () => {
  test('take over the record number of the entry they refer to', () => {
    const path = join(folder, 'recshare_1r.h5');
    const image = readFileSync(path);
    // Entry of /rb: 36 bytes, dataset 1, flags REF without REC, though the dataset has records.
    expect(image.indexOf(i32(36, 1, 0x10))).toBe(3936 + 0x54);
    const file = File.openSync(path);
    const { hex: bytes } = expectedOf('recshare_1r.h5').datasets['/rb'] as { hex: string };
    const first = file.dataset('rb').readSync({ start: [0, 0, 0], count: [1, 4, 5] }, { raw: true });
    expect(hex(first)).toBe(bytes.slice(0, 320));
    expect(hex(first)).toBe(hex(image.subarray(3136, 3136 + 160)));
    file.closeSync();
  });
});

withOracle('python', 'names that begin with an underscore', () => {
  const UNDOUBLED = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    f.move('/g/__w', '/g/_w')
`;
  const contents = expectedOf('under_1r.h5').datasets;

  test('are found where the original doubled them: in the root, and in a group by its handle', () => {
    const file = File.openSync(join(folder, 'under_1r.h5'));
    const stored = (path: string): string[] => [...handleOf(file.group(path)).node.links.keys()].sort();
    expect(stored('/')).toEqual(['_LOG', '__LOG2', '___y', '__grp', '__x', 'g', 'plain']);
    expect([stored('/_grp'), stored('/g')]).toEqual([['__z'], ['__w']]);
    for (const [path, { hex: bytes }] of Object.entries(contents)) expect(raw(file, path), path).toBe(bytes);
    expect(hex(file.group('g').dataset('_w').readSync(undefined, { raw: true }))).toBe(contents['/g/_w']?.hex);
    expect([...file.keys()].sort()).toEqual(['_LOG2', '__y', '_grp', '_x', 'g', 'plain']);
    file.closeSync();
  });

  test('are found where it did not, which is in a group by a path; a new one beside it is doubled', () => {
    const path = join(temporaryDirectory(), 'undoubled.h5');
    cpSync(join(folder, 'under_1r.h5'), path);
    pythonSync(UNDOUBLED, [path]);
    const file = File.openSync(path, { mode: 'r+' });
    expect([...handleOf(file.group('g')).node.links.keys()]).toEqual(['_w']);
    expect(raw(file, '/g/_w')).toBe(contents['/g/_w']?.hex);
    expect(hex(file.group('g').dataset('_w').readSync(undefined, { raw: true }))).toBe(contents['/g/_w']?.hex);
    expect([...file.group('g').keys()]).toEqual(['_w']);
    expect(() => file.createGroup('g/_w')).toThrow(expect.objectContaining({ code: 'EXISTS' }));
    file.createGroup('g/_v');
    file.closeSync();
    const again = File.openSync(path);
    expect([...handleOf(again.group('g')).node.links.keys()].sort()).toEqual(['__v', '_w']);
    expect([...again.group('g').keys()].sort()).toEqual(['_v', '_w']);
    expect(raw(again, '/g/_w')).toBe(contents['/g/_w']?.hex);
    again.closeSync();
  });
});
