import { join } from 'node:path';
import { type Dataset, File, T } from 'h5log';
import { compact, replay, seal } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();
const names = (dataset: Dataset): string[][] => dataset.dimensions.map(({ scales }) => scales.map(({ path }) => path));

function made(path: string, connector: 'log' | 'native'): void {
  const file = File.createSync(path, { connector });
  const lat = file.createDataset('lat', { dtype: 'float64', shape: [2] });
  lat.makeScale('latitude');
  const lon = file.createDataset('lon', { dtype: 'float64', shape: [3] });
  const index = file.createDataset('g/index', { dtype: 'int32', shape: [3] });
  index.makeScale();
  const field = file.createDataset('field', { dtype: 'float32', shape: [2, 3] });
  field.attachScale(0, lat);
  field.attachScale(1, lon);
  field.attachScale(1, index);
  field.labelDimension(1, 'east');
  for (const dataset of [lat, lon, index, field]) dataset.write(Array.from({ length: dataset.size }, (_, i) => i));
  file.closeSync();
}

describe.each(['log', 'native'] as const)('dimension scales in a %s file', (connector) => {
  test('are attached, found, labelled and detached', () => {
    const path = join(directory, `${connector}.h5`);
    made(path, connector);
    const file = File.openSync(path, { mode: 'r+' });
    const field = file.dataset('field');
    expect(names(field)).toEqual([['/lat'], ['/lon', '/g/index']]);
    expect(field.dimensions.map(({ label }) => label)).toEqual(['', 'east']);
    expect(file.dataset('lat').attributes.get('NAME')).toBe('latitude');
    expect(file.dataset('lat').attributes.describe('CLASS')).toEqual({
      dtype: T.string({ length: 16, pad: 'zero', charset: 'ascii' }),
      shape: [],
    });
    expect(file.dataset('lon').attributes.get('CLASS')).toBe('DIMENSION_SCALE');
    expect(file.dataset('lon').attributes.has('NAME')).toBe(false);
    expect(file.dataset('g/index').attributes.get('REFERENCE_LIST')).toEqual([{ dataset: '/field', dimension: 1 }]);
    // Again: it is attached already.
    field.attachScale(1, file.dataset('lon'));
    expect(names(field)).toEqual([['/lat'], ['/lon', '/g/index']]);
    field.detachScale(1, file.dataset('lon'));
    field.detachScale(0, file.dataset('lat'));
    expect(names(field)).toEqual([[], ['/g/index']]);
    file.closeSync();
    const again = File.openSync(path);
    expect(names(again.dataset('field'))).toEqual([[], ['/g/index']]);
    expect(again.dataset('lat').attributes.has('REFERENCE_LIST')).toBe(false);
    expect(again.dataset('g/index').attributes.has('REFERENCE_LIST')).toBe(true);
    again.closeSync();
  });

  test('refuse what the specification forbids', () => {
    const file = File.createSync(join(directory, `refused-${connector}.h5`), { connector });
    const other = File.createSync(join(directory, `other-${connector}.h5`), { connector });
    const a = file.createDataset('a', { dtype: 'int8', shape: [2] });
    const b = file.createDataset('b', { dtype: 'int8', shape: [2] });
    b.makeScale('b');
    a.attachScale(0, b);
    expect(() => a.makeScale()).toThrow(/has scales itself/);
    expect(() => b.attachScale(0, a)).toThrow(/is a scale/);
    expect(() => a.attachScale(1, b)).toThrow(/has 1 dimensions, and none with the number 1/);
    expect(() => a.attachScale(0, other.createDataset('c', { dtype: 'int8', shape: [2] }))).toThrow(/in another file/);
    expect(() => a.detachScale(0, file.createDataset('d', { dtype: 'int8', shape: [2] }))).toThrow(/is not attached/);
    expect(() => a.makeScale('a\0')).toThrow(expect.objectContaining({ code: 'OPTION' }) as Error);
    file.closeSync();
    other.closeSync();
  });

  test('are known by what they are, not by the path that they had', () => {
    const file = File.createSync(join(directory, `moved-${connector}.h5`), { connector });
    const options = { dtype: 'float32', shape: [3] } as const;
    const field = file.createDataset('field', options);
    const scale = file.createDataset('scale', options);
    file.move('scale', 'g/_moved');
    field.attachScale(0, scale);
    expect(names(field)).toEqual([['/g/_moved']]);
    const other = file.createDataset('scale', options);
    field.attachScale(0, scale);
    expect(names(field)).toEqual([['/g/_moved']]);
    expect(() => field.detachScale(0, other)).toThrow(/is not attached/);
    field.attachScale(0, other);
    file.flushSync();
    field.detachScale(0, scale);
    expect(names(field)).toEqual([['/scale']]);
    file.delete('g/_moved');
    expect(() => field.attachScale(0, scale)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }) as Error);
    file.closeSync();
  });

  test('that were deleted are detached when the file is closed, and in copies: libnetcdf opens none that leads nowhere', async () => {
    const path = join(directory, `deleted-${connector}.h5`);
    made(path, connector);
    const file = File.openSync(path, { mode: 'r+' });
    for (const name of ['lat', 'lon']) file.delete(name);
    const lonely = file.createDataset('lonely', { dtype: 'int8', shape: [1] });
    const gone = file.createDataset('gone', { dtype: 'int8', shape: [1] });
    lonely.attachScale(0, gone);
    file.flushSync();
    file.delete('gone');
    file.flushSync();
    const copies =
      connector === 'log' ? { replay, compact, seal: (from: string, to: string) => seal(from, { to }) } : { replay };
    const paths = [path];
    for (const [name, copy] of Object.entries(copies)) {
      await copy(path, `${path}.${name}`);
      paths.push(`${path}.${name}`);
    }
    file.closeSync();
    for (const each of paths) {
      const found = File.openSync(each);
      const [rows, columns] = found.dataset('field').attributes.get('DIMENSION_LIST') as string[][];
      expect([[...(rows as string[])], [...(columns as string[])]], each).toEqual([[], ['/g/index']]);
      expect(found.dataset('lonely').attributes.has('DIMENSION_LIST'), each).toBe(false);
      expect(found.dataset('g/index').attributes.get('REFERENCE_LIST'), each).toEqual([
        { dataset: '/field', dimension: 1 },
      ]);
      found.closeSync();
    }
  });

  test('cost a flush of one variable nothing that grows with the number of variables', () => {
    const growth = (variables: number): number => {
      const path = join(directory, `cost-${connector}-${variables}.h5`);
      let file = File.createSync(path, { connector });
      const time = file.createDataset('time', { dtype: 'float64', shape: [0], maxShape: [null] });
      time.makeScale('time');
      for (let i = 0; i < variables; i++) {
        const options = { dtype: 'float32', shape: [0], maxShape: [null], chunks: [16] } as const;
        file.createDataset(`v${i}`, options).attachScale(0, time);
      }
      file.closeSync();
      file = File.openSync(path, { mode: 'r+' });
      file.dataset('v0').append(Float32Array.of(1));
      const { bytes } = file.flushSync();
      file.closeSync();
      const after = File.openSync(path);
      const list = after.dataset('time').attributes.get('REFERENCE_LIST');
      expect(list).toEqual(Array.from({ length: variables }, (_, i) => ({ dataset: `/v${i}`, dimension: 0 })));
      after.closeSync();
      return bytes;
    };
    expect(growth(40)).toBeLessThan(growth(4) + 1500);
  });
});

withOracle('python', 'dimension scales by others', () => {
  const check = `
import h5py, sys
f = h5py.File(sys.argv[1], 'r')
d = f['field']
assert h5py.h5ds.is_scale(f['lat'].id) and h5py.h5ds.is_scale(f['lon'].id)
assert h5py.h5ds.get_scale_name(f['lat'].id) == b'latitude', h5py.h5ds.get_scale_name(f['lat'].id)
assert [[s.name for s in dim.values()] for dim in d.dims] == [['/lat'], ['/lon', '/g/index']]
assert [dim.label for dim in d.dims] == ['', 'east'], [dim.label for dim in d.dims]
for i, name in ((0, 'lat'), (1, 'lon'), (1, 'g/index')):
    assert h5py.h5ds.is_attached(d.id, f[name].id, i), name
`;
  test('are as h5py wants them: ordinary, sealed, replayed', async () => {
    const ordinary = join(directory, 'for-h5py.h5');
    made(ordinary, 'native');
    const log = join(directory, 'log-for-h5py.h5');
    made(log, 'log');
    const [sealed, replayed] = [join(directory, 'sealed.h5'), join(directory, 'replayed.h5')];
    await seal(log, { to: sealed });
    await replay(log, replayed);
    for (const path of [ordinary, sealed, replayed]) pythonSync(check, [path]);
  });

  test('of a log that was never closed are complete when it is sealed or replayed', async () => {
    const log = join(directory, 'unclosed.h5');
    made(log, 'log');
    const file = File.openSync(log, { mode: 'r+' });
    file.dataset('field').resize([2, 3]);
    file.dataset('field').attributes.set('units', 'm');
    file.flushSync();
    file.discard();
    const [sealed, replayed] = [join(directory, 'sealed-2.h5'), join(directory, 'replayed-2.h5')];
    await seal(log, { to: sealed });
    await replay(log, replayed);
    for (const path of [sealed, replayed]) pythonSync(check, [path]);
  });

  test('attached by h5py are found, kept and detached here', () => {
    const path = join(directory, 'by-h5py.h5');
    pythonSync(
      `
import h5py, sys
f = h5py.File(sys.argv[1], 'w')
f['x'] = [1., 2.]
f['y'] = [3., 4.]
f['v'] = [5., 6.]
f['x'].make_scale('ex'); f['y'].make_scale('why')
f['v'].dims[0].attach_scale(f['x']); f['v'].dims[0].attach_scale(f['y']); f['v'].dims[0].label = 'lab'
`,
      [path],
    );
    const file = File.openSync(path, { mode: 'r+' });
    const v = file.dataset('v');
    expect([names(v), v.dimensions[0]?.label]).toEqual([[['/x', '/y']], 'lab']);
    v.detachScale(0, file.dataset('y'));
    v.labelDimension(0, 'other');
    file.closeSync();
    pythonSync(
      `
import h5py, sys
f = h5py.File(sys.argv[1], 'r+')
assert [s.name for s in f['v'].dims[0].values()] == ['/x'] and f['v'].dims[0].label == 'other'
assert 'REFERENCE_LIST' not in f['y'].attrs and h5py.h5ds.is_attached(f['v'].id, f['x'].id, 0)
f['v'].dims[0].detach_scale(f['x']); f['v'].dims[0].attach_scale(f['y'])
`,
      [path],
    );
    const again = File.openSync(path);
    expect(names(again.dataset('v'))).toEqual([['/y']]);
    again.closeSync();
  });
});
