import { join } from 'node:path';
import { File, T } from 'h5log';
import { replay } from 'h5log/tools';
import { afterAll, expect, test } from 'vitest';
import { pythonSync, runSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { checkReplay, tally } from './check.ts';

const folder = temporaryDirectory();
let files = 0;

function paths(): { input: string; output: string } {
  files++;
  return { input: join(folder, `log-${files}.h5`), output: join(folder, `ordinary-${files}.h5`) };
}

afterAll(() => {
  process.stdout.write(`structure of replayed files: ${tally}\n`);
});

test('a replayed file keeps names that differ in leading underscores only, and those of the groups of the log', async () => {
  const { input, output } = paths();
  const names = ['__x', '_x', 'g/_y', 'g/__y', '_LOG', '_LOGS', '__LOG'];
  const file = File.createSync(input, { publish: 'never', logs: 'group' });
  for (const name of names) {
    file.createDataset(name, { dtype: 'int8', shape: [] }).write(name.length);
    file.attributes.set(name, name.length);
  }
  file.createSoftLink('soft', '/__x');
  file.closeSync();
  await replay(input, output);
  const replayed = File.openSync(output);
  expect([...replayed.keys()]).toEqual(['__x', '_x', 'g', '_LOG', '_LOGS', '__LOG', 'soft']);
  for (const name of names) {
    expect(replayed.dataset(name).readSync()[0]).toBe(name.length);
    expect(replayed.attributes.get(name)).toBe(name.length);
  }
  expect(replayed.dataset('soft').readSync()[0]).toBe(3);
  replayed.closeSync();
});

withOracle(['h5dump', 'h5diff', 'python'], 'the structure of a replayed file', () => {
  test('is that of the log file: groups, links, attributes, names with underscores', async () => {
    const { input, output } = paths();
    const file = File.createSync(input);
    // Neither the order of names nor that of creation by accident.
    for (const name of ['zebra', '_under', 'a/b/c', 'm', '__two', 'Grüße 😀']) {
      const group = file.createGroup(name);
      group.attributes.set('_own', 1);
      group.attributes.set('b', 'text');
      group.attributes.set('a', ['x', '', 'ccc']);
      group.attributes.set('nothing', null);
      group.attributes.set('none', new Float32Array(0));
      group.attributes.set('table', new Int16Array(6), { shape: [2, 3] });
      group.attributes.set('lists', [Int32Array.of(1, 2), new Int32Array(0)], { dtype: T.vlen('int32') });
      group.createDataset('_data/_x', { dtype: 'int32', shape: [2] }).write(Int32Array.of(1, 2));
      group.dataset('_data/_x').attributes.set('_ID', 'of the user');
      group.dataset('_data/_x').attributes.set('_dims', 3);
    }
    file.createSoftLink('soft', '/_under/_data/_x');
    file.createSoftLink('m/relative', '_data');
    file.createSoftLink('dangling', '/nowhere/_x');
    file.createExternalLink('m/outside', 'other.h5', '/_there');
    file.createHardLink('m/alias', '/_under/_data/_x');
    file.createHardLink('a/b/c/up', '/a');
    file.createHardLink('a/root', '/');
    file.attributes.set('to', ['/m', '/_under/_data/_x', '/', '/a/b/c/up'], { dtype: T.reference });
    const holder = T.compound({ n: 'int32', to: T.reference, text: T.string() });
    file.attributes.set(
      'records',
      [
        { n: 1, to: '/m', text: 'one' },
        { n: 2, to: '/__two', text: '' },
      ],
      { dtype: holder },
    );
    file.attributes.set('vlen of references', [['/m', '/zebra'], []], { dtype: T.vlen(T.reference) });
    file.closeSync();
    const seen = await checkReplay(input, output);
    expect(seen['/']?.links?.map(([name]) => name)).toEqual([
      'zebra',
      '_under',
      'a',
      'm',
      '__two',
      'Grüße 😀',
      'soft',
      'dangling',
    ]);
    expect(seen['/_under/_data/_x']).toEqual({ same: '/m/alias' });
    expect(seen['/']?.attributes?.[0]?.[3]).toEqual(['/m', '/m/alias', '/', '/a']);
  });

  test('keeps what h5py added to a log file: committed datatypes, region references, ordinary datasets', async () => {
    const { input, output } = paths();
    const file = File.createSync(input);
    file
      .createDataset('logged', { dtype: 'float64', shape: [4, 5], chunks: [2, 5] })
      .write(new Float64Array(20).fill(4));
    file.createGroup('g');
    file.closeSync();
    pythonSync(ADD, [input]);
    await replay(input, output);
    const found = JSON.parse(pythonSync(LOOK, [output])) as Record<string, unknown>;
    expect(found).toEqual({
      keys: ['_odd', 'chunked', 'compact', 'filtered', 'first', 'g', 'logged', 'plain', 'type', 'unwritten'],
      type: ['type', 'type'],
      region: ['/plain', 4],
      reference: ['/logged', '/g', '/type'],
      sums: [6, 4950, 190, 60, 80],
      lzf: 'lzf',
      unwritten: [0, -7],
      odd: 'by another program',
    });
    runSync('h5dump', ['-H', output]); // it does not know lzf
    for (const name of ['plain', 'chunked', 'compact', 'unwritten', 'g', 'type', 'first'])
      runSync('h5diff', [input, output, `/${name}`]);
  });

  test('is the same for h5diff as what h5py writes', async () => {
    const { input, output } = paths();
    const file = File.createSync(input);
    const x = file.createDataset('grid/x', {
      dtype: 'float64',
      shape: [30, 40],
      fill: -1,
      chunks: [7, 9],
      filters: ['shuffle', { deflate: 4 }],
    });
    for (let row = 29; row >= 0; row -= 2)
      x.write(
        new Float64Array(40).map((_, i) => row * 40 + i),
        { start: [row, 0], count: [1, 40] },
      );
    const t = file.createDataset('time', { dtype: T.bigEndian('int32'), shape: [5], maxShape: [null] });
    t.write([1, 2, 3, 4, 5]);
    file.createDataset('name', { dtype: T.string({ length: 8 }), shape: [2, 2] }).write(['a', 'bb', 'ccc', 'dddd']);
    const pair = T.compound({ a: 'int32', b: 'float64' });
    file.createDataset('pairs', { dtype: pair, shape: [3] }).write([0, 1, 2].map((a) => ({ a, b: a / 2 })));
    file.createDataset('flag', { dtype: T.bool, shape: [] }).write(true);
    x.attributes.set('units', 'K');
    x.attributes.set('range', Float64Array.of(0, 1200));
    file.group('grid').attributes.set('to', '/time', { dtype: T.reference });
    file.createSoftLink('grid/when', '/time');
    file.createHardLink('grid/label', '/name');
    file.closeSync();
    await replay(input, output);
    const canonical = `${output}.h5py`;
    pythonSync(CANONICAL, [canonical]);
    for (const [from, to] of [
      [output, canonical],
      [canonical, output],
    ] as const)
      expect(runSync('h5diff', ['-r', from, to])).not.toMatch(/[1-9]\d* differences? found|not comparable/i);
    // It would notice: one value, or one attribute.
    pythonSync("import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: f['grid/x'][3, 4] += 1", [canonical]);
    expect(() => runSync('h5diff', [output, canonical])).toThrow(/ended with 1/);
  });
});

const ADD = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    f['type'] = np.dtype([('a', '<i4'), ('b', '>f8')])
    f.create_dataset('first', (2,), f['type'])
    f['first'].attrs.create('typed', np.zeros(1, f['type'].dtype), dtype=f['type'])
    f.create_dataset('plain', data=np.arange(4, dtype='i2'))
    f.create_dataset('chunked', data=np.arange(100.0), chunks=(7,), maxshape=(None,))
    f.create_dataset('filtered', data=np.arange(20.0), chunks=(6,), compression='lzf')
    f.create_dataset('unwritten', (0,), 'f4', fillvalue=-7, maxshape=(None,), chunks=(3,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    compact = h5py.h5d.create(f.id, b'compact', h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((3,)), plist)
    compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([10, 20, 30], 'i4'))
    f['g'].attrs['region'] = f['plain'].regionref[0:4]
    f['g'].attrs.create('refs', [f['logged'].ref, f['g'].ref, f['type'].ref], dtype=h5py.ref_dtype)
    f.create_group('_odd').attrs['_note'] = 'by another program'
`;

const LOOK = `
import sys, json, h5py
with h5py.File(sys.argv[1], 'r') as f:
    region = f['g'].attrs['region']
    typed = h5py.h5a.open(f['first'].id, b'typed').get_type()
    print(json.dumps({
        'keys': sorted(f),
        'type': ['type' if f['first'].id.get_type().committed() else None, 'type' if typed.committed() else None],
        'region': [f[region].name, int(f[region][region].size)],
        'reference': [f[r].name for r in f['g'].attrs['refs']],
        'sums': [int(f[name][...].sum()) for name in ('plain', 'chunked', 'filtered', 'compact', 'logged')],
        'lzf': f['filtered'].compression,
        'unwritten': [f['unwritten'].shape[0], float(f['unwritten'].fillvalue)],
        'odd': f['_odd'].attrs['_note'],
    }))
`;

const CANONICAL = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    x = np.full((30, 40), -1.0)
    x[1::2] = np.arange(1200.0).reshape(30, 40)[1::2]
    d = f.create_dataset('grid/x', data=x, chunks=(7, 9), fillvalue=-1, shuffle=True, compression='gzip')
    d.attrs['units'] = 'K'
    d.attrs['range'] = np.array([0.0, 1200.0])
    f.create_dataset('time', data=np.arange(1, 6, dtype='>i4'), maxshape=(None,))
    f.create_dataset('name', data=np.array([[b'a', b'bb'], [b'ccc', b'dddd']]).astype(h5py.string_dtype('utf-8', 8)))
    pairs = np.zeros(3, np.dtype([('a', '<i4'), ('b', '<f8')]))
    pairs['a'], pairs['b'] = np.arange(3), np.arange(3) / 2
    f.create_dataset('pairs', data=pairs)
    f.create_dataset('flag', data=np.bool_(True))
    f['grid'].attrs['to'] = f['time'].ref
    f['grid/when'] = h5py.SoftLink('/time')
    f['grid/label'] = f['name']
`;
