import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { File, type H5LogError } from 'h5log';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { contentsExpected, contentsOf, expectedOf, folder, hex, misread, NOT_YET, readable } from './fixtures.ts';

const raw = (file: File, dataset: string): string => hex(file.dataset(dataset).readSync(undefined, { raw: true }));

describe('a file of the original', () => {
  test.each(readable)('%s reads as it was written', (name) => {
    const file = File.openSync(join(folder, name));
    expect(contentsOf(file)).toEqual(contentsExpected(expectedOf(name)));
    file.closeSync();
  });

  test('there are 57 that its own reader reads and 4 that it cannot read', () => {
    expect(readable.length + NOT_YET.length).toBe(59);
    expect(misread).toHaveLength(4);
  });

  test.each(NOT_YET)('%s cannot be read yet; take it off the list of exceptions once it can', (name) => {
    const read = (): unknown => {
      const file = File.openSync(join(folder, name));
      try {
        return contentsOf(file);
      } finally {
        file.closeSync();
      }
    };
    expect(read).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
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
    expect((file.session.log?.counts.config ?? 0) & 0x010).toBe(0x010);
    const before = contentsOf(file);
    file.attributes.set('seen', 1);
    file.closeSync();
    const again = File.openSync(path);
    expect((again.session.log?.counts.config ?? 0) & 0x010).toBe(0);
    expect(contentsOf(again).datasets).toEqual(before.datasets);
    again.closeSync();
  });

  test('merged entries with raw coordinates that are flagged as encoded: all that can be read in one way only', () => {
    const name = join('misread', 'merge_enc_mix_2r.h5');
    const file = File.openSync(join(folder, name));
    const found = Object.keys(expectedOf(name).datasets).map((dataset) => {
      try {
        return [dataset, raw(file, dataset)];
      } catch (error) {
        return [dataset, (error as H5LogError).code, (error as H5LogError).message.replace(/ \(at byte.*/, '')];
      }
    });
    file.closeSync();
    const { datasets } = expectedOf(name);
    expect(found).toEqual([
      ['/a', datasets['/a']?.hex],
      ['/b', datasets['/b']?.hex],
      ['/c', datasets['/c']?.hex],
      // 0 3 5 2 1 3 2 1 for 7 elements: starts 0 3 5 with counts 2 1 3 and 2 + 1, or starts 0 3 5 2 with counts 1 3 2 1.
      [
        '/d',
        'FORMAT',
        'an entry written in merge mode cannot be decoded: its 4 blocks can be read in more than one way',
      ],
      ['/e', datasets['/e']?.hex],
    ]);
  });
});

describe('names that begin with an underscore', () => {
  test('are found as they were created: by a path undoubled, by a handle doubled', () => {
    const file = File.openSync(join(folder, 'under_1r.h5'));
    const stored = (path: string): string[] => [...file.group(path).node.links.keys()];
    const { datasets } = expectedOf('under_1r.h5');
    // In the root every such name is doubled.
    expect(stored('/').filter((name) => name.startsWith('__')).length).toBeGreaterThan(0);
    for (const [path, { hex: bytes }] of Object.entries(datasets)) expect(raw(file, path), path).toBe(bytes);
    const groups = [...file.children()].filter(([, child]) => child?.kind === 'group').map(([name]) => name);
    const inside = groups.flatMap((group) => stored(group).map((name) => [group, name] as const));
    const undoubled = inside.filter(([, name]) => /^_(?!_)/.test(name));
    const doubled = inside.filter(([, name]) => name.startsWith('__'));
    expect([undoubled.length > 0, doubled.length > 0], JSON.stringify(inside)).toEqual([true, true]);
    for (const [group, name] of undoubled) expect(file.has(`/${group}/${name}`), name).toBe(true);
    for (const [group, name] of doubled) expect(file.has(`/${group}/${name.slice(1)}`), name).toBe(true);
    file.closeSync();
  });
});
