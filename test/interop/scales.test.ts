import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { replay, seal } from 'h5log/tools';
import { expect, test } from 'vitest';
import { oracle, pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();

/** A log with a variable and the dimension scale of it, as netCDF wants them. */
function logWithScale(name: string): string {
  const path = join(directory, name);
  const file = File.createSync(path, { publish: 'never' });
  const scale = file.createDataset('x', { dtype: 'float64', shape: [3] });
  scale.write(Float64Array.of(1, 2, 3));
  const variable = file.createDataset('t', { dtype: 'float32', shape: [3] });
  variable.write(Float32Array.of(7, 8, 9));
  scale.attributes.set('CLASS', 'DIMENSION_SCALE', { dtype: T.string({ length: 16, pad: 'zero', charset: 'ascii' }) });
  scale.attributes.set('NAME', 'x', { dtype: T.string({ length: 2, pad: 'zero', charset: 'ascii' }) });
  variable.attributes.set('DIMENSION_LIST', [['/x']], { dtype: T.vlen(T.reference), shape: [1] });
  const pair = T.compound({ dataset: T.reference, dimension: 'int32' });
  scale.attributes.set('REFERENCE_LIST', [{ dataset: '/t', dimension: 0 }], { dtype: pair });
  scale.attributes.set('units', 'm');
  file.closeSync();
  return path;
}

const shown = (path: string): unknown => {
  const file = File.openSync(path);
  const { attributes } = file.dataset('x');
  const result = [...attributes.keys()].map((name) => [name, attributes.get(name)]);
  expect(attributes.has('CLASS')).toBe(true);
  expect(attributes.describe('NAME')?.shape).toEqual([]);
  expect(file.dataset('t').attributes.get('DIMENSION_LIST')).toEqual([['/x']]);
  file.closeSync();
  return result;
};

const EXPECTED = [
  ['CLASS', 'DIMENSION_SCALE'],
  ['NAME', 'x'],
  ['REFERENCE_LIST', [{ dataset: '/t', dimension: 0 }]],
  ['units', 'm'],
];

withOracle(['ncdump', 'python'], 'a log with a dimension scale', () => {
  const ncdump = (path: string): { status: number | null; text: string } => {
    const { status, stdout, stderr } = spawnSync(oracle('ncdump') as string, ['-h', path], { encoding: 'utf8' });
    return { status, text: stdout + stderr };
  };

  test('does not crash netCDF, and shows its attributes here', () => {
    const path = logWithScale('log.h5');
    expect(shown(path)).toEqual(EXPECTED);
    expect(ncdump(path)).toMatchObject({ status: 0 });
    const names = pythonSync(`import h5py, sys\nprint(sorted(h5py.File(sys.argv[1], 'r')['x'].attrs))`, [path]);
    expect(names).not.toMatch(/'(CLASS|NAME|REFERENCE_LIST)'/);
    // Set again, deleted, set anew.
    const file = File.openSync(path, { mode: 'r+' });
    const { attributes } = file.dataset('x');
    attributes.set('NAME', 'y');
    expect([attributes.get('NAME'), attributes.size]).toEqual(['y', 4]);
    attributes.delete('NAME');
    expect(attributes.has('NAME')).toBe(false);
    attributes.set('NAME', 'x', { dtype: T.string({ length: 2, pad: 'zero', charset: 'ascii' }) });
    // A user's own name with an underscore is another attribute.
    attributes.set('_NAME', 5);
    expect([attributes.get('NAME'), attributes.get('_NAME')]).toEqual(['x', 5]);
    file.closeSync();
  });

  test.each([
    ['seal', async (path: string, to: string) => void (await seal(path, { to }))],
    ['replay', async (path: string, to: string) => void (await replay(path, to))],
  ])('has them back after %s', async (name, convert) => {
    const path = logWithScale(`before-${name}.h5`);
    const to = join(directory, `${name}.h5`);
    await convert(path, to);
    expect(ncdump(to)).toMatchObject({
      status: 0,
      text: expect.stringMatching(/x = 3 ;[\s\S]*float t\(x\)/) as string,
    });
    pythonSync(
      `import h5py, sys\nf = h5py.File(sys.argv[1], 'r')\nassert h5py.h5ds.is_scale(f['x'].id)\nassert f['t'].dims[0][0].name == '/x'\nassert f['t'].dims[0][0][2] == 3`,
      [to],
    );
    expect((shown(to) as unknown[]).length).toBe(4);
  });
});
