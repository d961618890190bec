import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import { encodeValues } from '../../src/dtype/encode.ts';
import type { DType } from '../../src/dtype/model.ts';
import type { ChunkEntry } from '../../src/hdf5/layouts/chunks/chunk-index.ts';
import { chunked, compact, contiguous, unallocated, virtual } from '../../src/hdf5/layouts/new-dataset.ts';
import { type Dataspace, NULL_SPACE, SCALAR_SPACE, simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import type { FilterEntry } from '../../src/hdf5/messages/filter-pipeline.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { checkFile, printTally } from './check.ts';
import { cutChunks, Draft, regionOf } from './driver.ts';

const folder = temporaryDirectory();
const fresh = (name: string): [string, Draft] => {
  const path = join(folder, name);
  return [path, Draft.create(path)];
};
const next = random(seed('interop: data'));
const noise = (count: number): Float64Array =>
  Float64Array.from({ length: count }, () => Math.round(next() * 1000) / 8);
const bytesOf = (values: Float64Array): Uint8Array => new Uint8Array(values.buffer);

const DEFLATE: FilterEntry = { id: 1, name: '', flags: 1, values: [6] };
const SHUFFLE: FilterEntry = { id: 2, name: '', flags: 1, values: [8] };
const FLETCHER: FilterEntry = { id: 3, name: '', flags: 0, values: [] };
const PIPELINES: Record<string, FilterEntry[]> = {
  none: [],
  deflate: [DEFLATE],
  shuffle: [SHUFFLE],
  fletcher: [FLETCHER],
  all: [SHUFFLE, DEFLATE, FLETCHER],
};

interface Chunked {
  readonly shape: readonly number[];
  readonly max?: readonly (number | null)[];
  readonly chunk: readonly number[];
  readonly filters?: readonly FilterEntry[];
  readonly skip?: (at: readonly number[]) => boolean;
  readonly fill?: number;
}

/** A chunked dataset of noise, its missing chunks full of the fill value. */
function putChunked(draft: Draft, path: string, { shape, max, chunk, filters = [], skip, fill }: Chunked): void {
  const values = noise(shape.reduce((product, n) => product * n, 1));
  const chunks = cutChunks(values, shape, chunk, filters, skip);
  const seen = values.map((value, i) => {
    const at: number[] = [];
    for (let rest = i, d = shape.length - 1; d >= 0; d--) {
      at[d] = Math.floor((rest % (shape[d] as number)) / (chunk[d] as number));
      rest = Math.floor(rest / (shape[d] as number));
    }
    return skip?.(at) ? (fill ?? 0) : value;
  });
  const fillBytes = fill === undefined ? {} : { fill: bytesOf(Float64Array.of(fill)) };
  const dataset = {
    dtype: 'float64',
    space: simpleSpace(shape, max),
    layout: chunked(chunk, chunks),
    filters,
    ...fillBytes,
  } as const;
  draft.dataset(path, dataset, 'float64', seen);
}

withOracle(['h5dump', 'h5ls', 'ncdump', 'python'], 'datasets that we write', () => {
  afterAll(() => printTally('interop: datasets that we write'));

  test('of null, scalar and simple spaces: contiguous, compact, unallocated', async () => {
    const [path, draft] = fresh('spaces.h5');
    const spaces: [string, Dataspace, number][] = [
      ['null', NULL_SPACE, 0],
      ['scalar', SCALAR_SPACE, 1],
      ['one', simpleSpace([7]), 7],
      ['three', simpleSpace([2, 3, 4]), 24],
      ['many', simpleSpace(Array(32).fill(1)), 1],
      ['empty', simpleSpace([0, 5]), 0],
    ];
    for (const [name, space, count] of spaces) {
      const values = noise(count);
      draft.dataset(
        `/contiguous ${name}`,
        { dtype: 'float64', space, layout: contiguous(regionOf(bytesOf(values))) },
        'float64',
        values,
      );
      draft.dataset(
        `/compact ${name}`,
        { dtype: 'float64', space, layout: compact(bytesOf(values)) },
        'float64',
        values,
      );
      draft.dataset(
        `/unallocated ${name}`,
        { dtype: 'float64', space, layout: unallocated },
        'float64',
        new Float64Array(count),
      );
    }
    draft.close();
    await checkFile(path, draft);
  });

  test('that netCDF knows', async () => {
    const [path, draft] = fresh('netcdf.h5');
    draft.numbers('/one', 'float64', simpleSpace([7]), noise(7));
    draft.numbers('/scalar', 'int32', SCALAR_SPACE, Int32Array.of(7));
    putChunked(draft, '/growing', { shape: [10, 3], max: [null, 3], chunk: [4, 3], filters: [SHUFFLE, DEFLATE] });
    putChunked(draft, '/fixed', { shape: [10, 3], chunk: [4, 2] });
    draft.close();
    await checkFile(path, draft);
  });

  test('at an address that another dataset has', async () => {
    const [path, draft] = fresh('address.h5');
    const region = regionOf(bytesOf(Float64Array.of(1, 2, 3, 4, 5, 6)));
    draft.dataset(
      '/all',
      { dtype: 'float64', space: simpleSpace([6]), layout: contiguous(region) },
      'float64',
      [1, 2, 3, 4, 5, 6],
    );
    draft.commit();
    const part = contiguous(region.address + 16);
    draft.dataset('/part', { dtype: 'float64', space: simpleSpace([2]), layout: part }, 'float64', [3, 4]);
    draft.close();
    await checkFile(path, draft);
  });

  test('of every type', async () => {
    const [path, draft] = fresh('types.h5');
    const types: [string, DType, ArrayLike<unknown>][] = [
      ['half', 'float16', Float32Array.of(1.5, -2)],
      ['big', T.bigEndian('float32'), Float32Array.of(1.5, -2)],
      ['i24', T.bigEndian('uint16'), Uint16Array.of(1, 65535)],
      ['text', T.string({ length: 5, pad: 'space' }), ['ab', 'cdefg']],
      ['bool', T.bool, [1, 0]],
      ['enum', T.enum('int8', { red: 1, green: 2 }), [2, 1]],
      [
        'record',
        T.compound({ a: 'int8', b: T.array('float64', [2]) }, { offsets: { a: 1, b: 8 }, size: 32 }),
        [
          { a: 1, b: [1, 2] },
          { a: 2, b: [3, 4] },
        ],
      ],
      ['opaque', T.opaque(4, 'tag'), [Uint8Array.of(1, 2, 3, 4), Uint8Array.of(5, 6, 7, 8)]],
      ['bits', T.bitfield(2), [1, 65535]],
    ];
    for (const [name, dtype, values] of types) draft.numbers(`/${name}`, dtype, simpleSpace([2]), values);
    draft.close();
    await checkFile(path, draft);
  });

  test.each(Object.keys(PIPELINES))('in chunks with each index, filters: %s', async (name) => {
    const filters = PIPELINES[name] as FilterEntry[];
    const [path, draft] = fresh(`chunks-${name}.h5`);
    const missing = (at: readonly number[]): boolean => at.reduce((sum, c) => sum + c, 0) % 3 === 1;
    const all = (): boolean => true;
    putChunked(draft, '/single', { shape: [6, 5], chunk: [6, 5], filters });
    putChunked(draft, '/single larger', { shape: [5, 4], chunk: [6, 5], filters });
    putChunked(draft, '/single missing', { shape: [6, 5], chunk: [6, 5], filters, skip: all, fill: 4 });
    putChunked(draft, '/array', { shape: [20, 9], chunk: [4, 5], filters });
    putChunked(draft, '/array may grow', { shape: [10, 9], max: [20, 18], chunk: [4, 5], filters });
    putChunked(draft, '/array of one that may grow', { shape: [3], max: [4], chunk: [4], filters });
    putChunked(draft, '/array missing', { shape: [20, 9], chunk: [4, 5], filters, skip: missing, fill: -1 });
    putChunked(draft, '/array none', { shape: [20, 9], chunk: [4, 5], filters, skip: all });
    putChunked(draft, '/array 1024', { shape: [1024], chunk: [1], filters });
    putChunked(draft, '/array 1025', { shape: [1025], chunk: [1], filters, skip: missing });
    putChunked(draft, '/array paged', { shape: [90, 90], chunk: [2, 3], filters });
    for (const count of [1, 64, 65])
      putChunked(draft, `/tree ${count}`, { shape: [count * 2], max: [null], chunk: [2], filters });
    putChunked(draft, '/tree 5000', { shape: [100, 100], max: [null, null], chunk: [2, 1], filters });
    putChunked(draft, '/tree missing', {
      shape: [40, 40],
      max: [null, 40],
      chunk: [4, 3],
      filters,
      skip: missing,
      fill: 2.5,
    });
    putChunked(draft, '/tree none', { shape: [40, 40], max: [null, 40], chunk: [4, 3], filters, skip: all });
    putChunked(draft, '/tree of no size', { shape: [0, 40], max: [null, 40], chunk: [4, 3], filters });
    draft.close();
    const seen = await checkFile(path, draft);
    expect(seen['/tree 5000']?.dataset?.filters).toEqual(filters.map(({ id }) => id));
  });

  test('in chunks that lie one after the other: the implicit index', async () => {
    const [path, draft] = fresh('implicit.h5');
    const values = noise(35);
    const region = regionOf(bytesOf(values));
    draft.dataset(
      '/whole',
      { dtype: 'float64', space: simpleSpace([35]), layout: contiguous(region) },
      'float64',
      values,
    );
    draft.commit();
    const chunks: ChunkEntry[] = [0, 1, 2, 3, 4].map((i) => ({
      cell: [i],
      address: region.address + i * 56,
      size: 56,
      mask: 0,
    }));
    draft.dataset(
      '/chunks',
      { dtype: 'float64', space: simpleSpace([35]), layout: chunked([7], chunks) },
      'float64',
      values,
    );
    const two: ChunkEntry[] = chunks.map((place, i) => ({ ...place, cell: [i, 0] }));
    draft.dataset(
      '/edge',
      { dtype: 'float64', space: simpleSpace([5, 6]), layout: chunked([1, 7], two) },
      'float64',
      values.filter((_, i) => i % 7 < 6),
    );
    draft.close();
    await checkFile(path, draft);
  });

  test('a chunk without some filters', async () => {
    const [path, draft] = fresh('mask.h5');
    const values = noise(8);
    const [first, second] = cutChunks(values, [8], [4], [SHUFFLE, DEFLATE]);
    const raw = bytesOf(values.slice(4));
    const chunks = [
      first as ChunkEntry,
      { cell: (second as ChunkEntry).cell, address: regionOf(raw), size: raw.length, mask: 3 },
    ];
    for (const [name, max] of [
      ['/array', [8]],
      ['/tree', [null]],
    ] as const) {
      const places = chunks.map((place) => ({ ...place }));
      draft.dataset(
        name,
        {
          dtype: 'float64',
          space: simpleSpace([8], [...max]),
          layout: chunked([4], places),
          filters: [SHUFFLE, DEFLATE],
        },
        'float64',
        values,
      );
    }
    draft.close();
    await checkFile(path, draft);
  });

  test('fill values: set, default and undefined', async () => {
    const [path, draft] = fresh('fill.h5');
    const space = simpleSpace([3], [null]);
    const layout = chunked([2], []);
    draft.dataset(
      '/set',
      { dtype: 'float64', space, layout, fill: bytesOf(Float64Array.of(-999)) },
      'float64',
      [-999, -999, -999],
    );
    draft.dataset('/default', { dtype: 'float64', space, layout }, 'float64', [0, 0, 0]);
    draft.dataset(
      '/late',
      { dtype: 'int16', space: simpleSpace([2]), layout: unallocated, fill: Uint8Array.of(7, 1) },
      'int16',
      [263, 263],
    );
    const text = T.string({ length: 3 });
    draft.dataset(
      '/text',
      {
        dtype: text,
        space: simpleSpace([1]),
        layout: unallocated,
        fill: encodeValues(text, 'abc', 1).bytes,
      },
      text,
      ['abc'],
    );
    const numbers = noise(3);
    draft.dataset(
      '/undefined',
      {
        dtype: 'float64',
        space: simpleSpace([3]),
        layout: contiguous(regionOf(bytesOf(numbers))),
        fill: 'undefined',
      },
      'float64',
      numbers,
    );
    draft.close();
    await checkFile(path, draft, {
      noNetcdf: 'ncdump 4.9 crashes on a fill value of a fixed-length string, also of h5py',
    });
    const script = `
import sys, json, h5py
f = h5py.File(sys.argv[1])
kinds = {h5py.h5d.FILL_VALUE_UNDEFINED: 'undefined', h5py.h5d.FILL_VALUE_DEFAULT: 'default', h5py.h5d.FILL_VALUE_USER_DEFINED: 'set'}
print(json.dumps({n: kinds[f[n].id.get_create_plist().fill_value_defined()] for n in f}))`;
    expect(JSON.parse(pythonSync(script, [path]))).toEqual({
      set: 'set',
      default: 'default',
      late: 'set',
      text: 'set',
      undefined: 'undefined',
    });
  });

  test('virtual: of the same file and another, 1, 10 and 1,000 mappings', async () => {
    const [source, other] = fresh('source.h5');
    const far = noise(2000);
    other.numbers('/far', 'float64', simpleSpace([2000]), far);
    other.close();
    const [path, draft] = fresh('virtual.h5');
    const near = noise(2000);
    draft.numbers('/near', 'float64', simpleSpace([2000]), near);
    for (const count of [1, 10, 1000]) {
      for (const [file, dataset, values] of [
        ['.', '/near', near],
        ['source.h5', '/far', far],
      ] as const) {
        // Every second element, and the last one missing: it shows the fill value.
        const mappings = Array.from({ length: count }, (_, i) => ({
          file,
          dataset,
          source: { start: [i * 2], count: [1] },
          target: { start: [i], count: [1] },
        }));
        const seen = Array.from({ length: count + 1 }, (_, i) => (i < count ? values[i * 2] : -5));
        const fill = bytesOf(Float64Array.of(-5));
        draft.dataset(
          `/${count} of ${file}`,
          { dtype: 'float64', space: simpleSpace([count + 1]), layout: virtual(mappings), fill },
          'float64',
          seen as number[],
        );
      }
    }
    const rows = [0, 1].map((i) => ({
      file: '.',
      dataset: '/near',
      source: { start: [i * 6], count: [6] },
      target: { start: [1 - i, 0, 0], count: [1, 2, 3] },
    }));
    draft.dataset('/folded', { dtype: 'float64', space: simpleSpace([2, 2, 3]), layout: virtual(rows) }, 'float64', [
      ...near.slice(6, 12),
      ...near.slice(0, 6),
    ]);
    draft.close();
    await checkFile(path, draft);
    await checkFile(source, other);
  });

  test('virtual with coordinates beyond 2^32', async () => {
    const [path, draft] = fresh('far.h5');
    const start = 2 ** 33 + 5;
    draft.numbers('/near', 'float64', simpleSpace([4]), Float64Array.of(1, 2, 3, 4));
    const mappings = [
      { file: '.', dataset: '/near', source: { start: [1], count: [3] }, target: { start: [start], count: [3] } },
    ];
    draft.dataset(
      '/far',
      { dtype: 'float64', space: simpleSpace([2 ** 34]), layout: virtual(mappings) },
      'float64',
      [],
    );
    draft.close();
    await checkFile(path, draft, { noData: true });
    const script = 'import sys, h5py; a = int(sys.argv[2]); print(h5py.File(sys.argv[1])["far"][a - 1:a + 4].tolist())';
    expect(pythonSync(script, [path, String(start)]).trim()).toBe('[0.0, 2.0, 3.0, 4.0, 0.0]');
  });

  test('that h5py goes on writing: chunks into each index, a resize, a new member of the group', async () => {
    const [path, draft] = fresh('go-on.h5');
    for (const [name, max] of [
      ['/array', [200]],
      ['/tree', [null]],
    ] as const) {
      putChunked(draft, name, {
        shape: [100],
        max,
        chunk: [1],
        filters: [DEFLATE],
        skip: ([c]) => (c as number) % 2 === 1,
      });
    }
    putChunked(draft, '/paged', { shape: [3000], chunk: [1], skip: ([c]) => (c as number) > 2 });
    putChunked(draft, '/single', { shape: [4], chunk: [4], filters: [DEFLATE] });
    draft.close();
    const script = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    for name in ('array', 'tree'):
        f[name].resize((150,))
        f[name][1:150:2] = 7
    f['paged'][5:2900] = 8
    f['single'][1] = 9
`;
    pythonSync(script, [path]);
    const seen = await checkFile(path);
    const seven = '401c000000000000';
    for (const name of ['/array', '/tree']) {
      const meant = Array.from({ length: 150 }, (_, i) =>
        i % 2 ? seven : (draft.data.get(name)?.[i] ?? '0000000000000000'),
      );
      expect(seen[name]?.dataset?.values).toEqual(meant);
    }
    expect(seen['/paged']?.dataset?.values?.slice(0, 3)).toEqual(draft.data.get('/paged')?.slice(0, 3));
    expect(seen['/paged']?.dataset?.values?.slice(5, 2900)).toEqual(Array(2895).fill('4020000000000000'));
  });
});
