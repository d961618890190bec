import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

// Files that the original wrote, each with what was written: test/fixtures/original.
const fixtures = new URL('../../fixtures/original/', import.meta.url).pathname;
const folder = temporaryDirectory();

interface Expected {
  readonly datasets: Readonly<Record<string, { shape: number[]; maxshape: (number | null)[]; hex: string }>>;
  readonly attributes: readonly { object: string; name: string; shape: number[]; hex: string }[];
}

const inputs = [
  ...readdirSync(fixtures).filter((name) => name.endsWith('.h5')),
  ...['deflate_1r', 'encfull_1r', 'passthru_ndims_2r'].map((name) => join('misread', `${name}.h5`)),
];

/** Values are compared as the expected ones are written: little-endian, whatever the file's byte order. */
const LOOK = `
import sys, json, h5py
import numpy as np
def little(array):
    return array.astype(array.dtype.newbyteorder('<')).tobytes().hex()
def look(path):
    datasets, attributes = {}, {}
    with h5py.File(path, 'r') as f:
        def visit(name, obj):
            where = '/' + name
            for key in obj.attrs:
                a = obj.attrs.get_id(key)
                value = np.empty(a.shape, a.dtype)
                a.read(value)
                attributes[(where if name else '/') + ' ' + key] = {'shape': list(a.shape), 'hex': little(value)}
            if isinstance(obj, h5py.Dataset):
                value = np.empty(obj.shape, obj.dtype)
                if obj.size: obj.id.read(h5py.h5s.ALL, h5py.h5s.ALL, value)
                datasets[where] = {'shape': list(obj.shape), 'maxshape': list(obj.maxshape), 'hex': little(value)}
        visit('', f)
        f.visititems(visit)
    return {'datasets': datasets, 'attributes': attributes}
print(json.dumps([look(path) for path in sys.argv[1:]]))
`;

withOracle(['h5dump', 'python'], 'files of the original, replayed', () => {
  test('hold what was written', async () => {
    const outputs: string[] = [];
    let elements = 0;
    for (const name of inputs) {
      outputs.push(join(folder, basename(name)));
      elements += (await replay(join(fixtures, name), outputs.at(-1) as string)).elements;
    }
    h5dump(...outputs);
    const seen = JSON.parse(pythonSync(LOOK, outputs)) as Record<'datasets' | 'attributes', Record<string, unknown>>[];
    inputs.forEach((name, i) => {
      const expected: Expected = JSON.parse(
        readFileSync(join(fixtures, name.replace(/\.h5$/, '.expected.json')), 'utf8'),
      );
      const datasets = Object.fromEntries(
        Object.entries(expected.datasets).map(([path, { shape, maxshape, hex }]) => [path, { shape, maxshape, hex }]),
      );
      expect(seen[i]?.datasets, name).toEqual(datasets);
      const attributes = Object.fromEntries(
        (expected.attributes ?? []).map(({ object, name: key, shape, hex }) => [`${object} ${key}`, { shape, hex }]),
      );
      expect(seen[i]?.attributes, name).toEqual(attributes);
    });
    process.stdout.write(`replayed ${inputs.length} files of the original, ${elements} elements\n`);
    expect(inputs.length).toBeGreaterThanOrEqual(47);
  });

  test('are refused when they cannot be decoded with certainty', async () => {
    const output = join(folder, 'refused.h5');
    const unsure = join(fixtures, 'misread', 'merge_enc_mix_2r.h5');
    await expect(replay(unsure, output)).rejects.toMatchObject({ code: 'FORMAT', file: unsure });
    expect(readdirSync(folder)).not.toContain('refused.h5');
  });
});
