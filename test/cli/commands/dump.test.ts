import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, gunzipSync } from 'node:zlib';
import { File, T } from 'h5log';
import { seal } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { h5log, intoHead, slow } from '../command.ts';

const script = new URL('./dumped-files.py', import.meta.url);
const folder = temporaryDirectory();
const at = (name: string): string => join(folder, name);

/** What `h5log dump` prints, which must succeed. */
async function dumped(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await h5log('dump', ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** A log with all that a log can hold. */
async function makeLog(path: string): Promise<void> {
  await using file = await File.create(path);
  file.attributes.set('title', 'a log');
  file.attributes.set('_own', 5);
  const field = file.createDataset('run/field', { dtype: 'float64', shape: [3, 20], maxShape: [null, 20], fill: -1 });
  field.attributes.set('units', 'K');
  for (let step = 0; step < 3; step++) {
    field.write(
      Float64Array.from({ length: 12 }, (_, i) => step * 100 + i / 4),
      { start: [step, step * 4], count: [1, 12] },
    );
    await file.flush();
  }
  file.createDataset('run/_hidden', { dtype: 'int8', shape: [4] }).write([1, 2, 3, 4]);
  file
    .createDataset('packed', {
      dtype: 'int32',
      shape: [40, 60],
      chunks: [10, 20],
      filters: ['shuffle', { deflate: 3 }],
    })
    .write(Int32Array.from({ length: 2400 }, (_, i) => i));
  file.createDataset('pairs', { dtype: T.compound({ step: 'int16', value: 'float64' }), shape: [2] }).write([
    { step: 1, value: 0.5 },
    { step: 2, value: -1 },
  ]);
  file.createDataset('names', { dtype: T.string({ length: 4 }), shape: [2] }).write(['abcd', 'efgh']);
  file.createDataset('nothing', { dtype: 'float32', shape: [0, 5] });
  file.createDataset('one', { dtype: 'int64', shape: [] }).write([-7n]);
  file.createSoftLink('latest', '/run/field');
  file.createHardLink('alias', '/one');
}

withOracle(['python', 'h5dump'], 'h5log dump beside h5dump', () => {
  pythonSync(readFileSync(script, 'utf8'), [folder]);
  const samples = new URL('../../fixtures/hdf5/', import.meta.url);
  const names = [
    'chunk-indexes',
    'chunk-trees',
    'dense-attributes',
    'dense-links',
    'extension',
    'headers',
    'heaps',
    'old-group',
    'shared',
    'short-addresses',
    'superblock-2',
    'unfiltered-edges',
    'virtual',
  ];

  test.each(['numbers.h5', 'types.h5', 'structure.h5', 'latest.h5'])('%s: the same text', slow, async (name) => {
    // The NULs that fill a string up are not part of it.
    expect(await dumped(at(name))).toBe(h5dump(at(name)).replaceAll('\\000', ''));
    expect(await dumped('-H', at(name))).toBe(h5dump('-H', at(name)));
  });

  test.each(names)('sample %s of libhdf5: the same text', slow, async (name) => {
    const path = at(`sample-${name}.h5`);
    writeFileSync(path, gunzipSync(readFileSync(new URL(`${name}.h5.gz`, samples))));
    // The NULs that fill a string up are not part of it.
    expect(await dumped(path)).toBe(h5dump(path).replaceAll('\\000', ''));
  });

  test('a log: the text that h5dump prints of the sealed file', slow, async () => {
    const [path, sealed] = [at('log.h5'), at('sealed.h5')];
    await makeLog(path);
    await seal(path, { to: sealed });
    const theirs = h5dump(sealed)
      .replace(`"${sealed}"`, `"${path}"`)
      // Where seal keeps the pieces of virtual datasets.
      .replace(/^ {3}GROUP "_pieces" \{\n(?: {4,}.*\n)* {3}\}\n/m, '');
    expect(await dumped(path)).toBe(theirs);
  });

  test('differs where docs/cli.md says so', slow, async () => {
    const text = await dumped(at('different.h5'));
    const data = (name: string): string =>
      text.split(`DATASET "${name}" {`)[1]?.split('DATA {\n')[1]?.split('\n      }\n')[0] ?? '';
    expect(data('digits')).toBe(
      '      (0): 0.3333333333333333, 0.30000000000000004, 1234567,\n      (3): 3.3333333333333337e-06',
    );
    expect(data('single')).toBe('      (0): 0.33333334, 16777216');
    expect(data('half')).toBe('      (0): 0.1, 2.5');
    expect(data('padded')).toBe('      (0): "ab", "c"');
    expect(data('text')).toBe('      (0): "a \\"b\\" \\\\", "grüß", "two\\nlines\\t."');
    expect(data('references')).toBe('      (0): /digits, /');
    expect(data('field').split('\n').slice(0, 4)).toEqual([
      '      (0,0): {',
      '            0',
      '         },',
      '      (0,1): {',
    ]);
  });
});

describe('h5log dump', () => {
  const path = at('small.h5');
  const make = async (): Promise<void> => {
    await using file = await File.create(path);
    file.createDataset('g/x', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
    file.attributes.set('title', 'small');
    file.createSoftLink('s', '/g/x');
  };

  test('prints all groups, attributes and values of a log', slow, async () => {
    await make();
    expect((await dumped(path)).split('\n')).toEqual([
      `HDF5 "${path}" {`,
      'GROUP "/" {',
      '   ATTRIBUTE "title" {',
      '      DATATYPE  H5T_STRING {',
      '         STRSIZE H5T_VARIABLE;',
      '         STRPAD H5T_STR_NULLTERM;',
      '         CSET H5T_CSET_UTF8;',
      '         CTYPE H5T_C_S1;',
      '      }',
      '      DATASPACE  SCALAR',
      '      DATA {',
      '      (0): "small"',
      '      }',
      '   }',
      '   GROUP "g" {',
      '      DATASET "x" {',
      '         DATATYPE  H5T_STD_I32LE',
      '         DATASPACE  SIMPLE { ( 3 ) / ( 3 ) }',
      '         DATA {',
      '         (0): 1, 2, 3',
      '         }',
      '      }',
      '   }',
      '   SOFTLINK "s" {',
      '      LINKTARGET "/g/x"',
      '   }',
      '}',
      '}',
      '',
    ]);
    const header = await dumped('-H', path);
    expect(header).toContain('DATASPACE  SIMPLE { ( 3 ) / ( 3 ) }\n      }\n');
    expect(header).not.toContain('DATA {');
  });

  test('--json: every object, and the values of every dataset', slow, async () => {
    await make();
    expect(JSON.parse(await dumped('--json', path))).toEqual({
      file: path,
      groups: [
        { path: '/', attributes: [{ name: 'title', dtype: 'string', shape: [], value: 'small' }] },
        { path: '/g', attributes: [] },
      ],
      links: [{ path: '/s', kind: 'soft', target: '/g/x' }],
      datatypes: [],
      datasets: [
        {
          path: '/g/x',
          dtype: 'int32',
          shape: [3],
          maxShape: [3],
          attributes: [],
          slab: { start: [0], stride: [1], count: [3], block: [1] },
          selected: [3],
          values: [1, 2, 3],
        },
      ],
    });
  });

  test('--log takes the log apart; --dataset and --log exclude each other', slow, async () => {
    await make();
    const text = await dumped('--log', path);
    expect(text).toMatch(/^.*small\.h5: HDF5-LogVOL\nconfiguration/);
    expect(text).toMatch(/entry at \d+, \d+ bytes: dataset 0 \/g\/x/);
    const wrong = await h5log('dump', '--log', '-d', '/g/x', path);
    expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--log') });
    const useless = await h5log('dump', '-v', path);
    expect(useless).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--verbose') });
  });

  test('one damaged dataset does not hide the others: the exit code is 1', slow, async () => {
    const damaged = at('damaged.h5');
    {
      await using file = await File.create(damaged);
      const filters = [{ deflate: 6 }] as const;
      file.createDataset('a', { dtype: 'int32', shape: [900], chunks: [900], filters }).write(new Int32Array(900));
      file.createDataset('b', { dtype: 'int32', shape: [2] }).write([1, 2]);
    }
    const bytes = readFileSync(damaged);
    const stream = bytes.indexOf(deflateSync(new Uint8Array(3600), { level: 6 }));
    expect(stream).toBeGreaterThan(0);
    writeFileSync(damaged, bytes.fill(0xff, stream + 2, stream + 8));
    const { code, stdout, stderr } = await h5log('dump', damaged);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/DATASET "a" \{\n(?: {6}.*\n)* {6}DATA \{\n {6}ERROR ".*"\n {6}\}\n {3}\}/);
    expect(stdout).toContain('(0): 1, 2\n');
    expect(code).toBe(1);
  });

  test('of a large file prints at once, and in little memory', { timeout: 180_000 }, async () => {
    const large = at('large.h5');
    {
      await using file = await File.create(large);
      file.createDataset('d', { dtype: 'float64', shape: [50_000, 1000] });
    }
    const begun = performance.now();
    const { code, stdout, stderr } = await intoHead(12, 'dump', large);
    expect(stdout.split('\n')).toHaveLength(13);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(performance.now() - begun).toBeLessThan(20_000);
  });
});
