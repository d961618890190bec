import { join } from 'node:path';
import { type DType, File, type Filter, T } from 'h5log';
import { replay } from 'h5log/tools';
import { afterAll, expect, test } from 'vitest';
import { runSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { checkReplay, tally } from './check.ts';

const folder = temporaryDirectory();
let files = 0;

function paths(): { input: string; output: string } {
  files++;
  return { input: join(folder, `log-${files}.h5`), output: join(folder, `ordinary-${files}.h5`) };
}

/** Writes a log file, replays it and compares. */
async function check(program: (file: File) => void, options: Parameters<typeof replay>[2] = {}) {
  const { input, output } = paths();
  const file = File.createSync(input);
  program(file);
  file.closeSync();
  return checkReplay(input, output, options);
}

const counted = (n: number): Float64Array => new Float64Array(n).map((_, i) => i + 0.25);

const record = T.compound({ id: 'int32', at: T.array('float32', [2, 3]), name: T.string({ length: 7 }) });
const TYPES: Readonly<Record<string, [DType, unknown[], unknown?]>> = {
  ...Object.fromEntries(
    (['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'float16', 'float32', 'float64'] as const).flatMap(
      (name): [string, [DType, unknown[], unknown?]][] => [
        [name, [name, [1, 2, 3, 4, 5, 100], 7]],
        [`big ${name}`, [T.bigEndian(name), [1, 2, 3, 4, 5, 100], 7]],
      ],
    ),
  ),
  int64: ['int64', [1n, -2n, 3n, 4n, 2n ** 62n, -(2n ** 63n)], -5n],
  'big uint64': [T.bigEndian('uint64'), [1n, 2n, 3n, 4n, 2n ** 62n, 2n ** 64n - 1n], 9n],
  bool: [T.bool, [true, false, true, true, false, true]],
  enum: [T.enum('int16', { RED: 1, GREEN: -2 }), [1, -2, 1, 1, -2, 1], -2],
  text: [T.string({ length: 5, pad: 'space' }), ['a', '', 'Grü', 'x', 'y', 'zzzzz'], 'none'],
  ascii: [T.string({ length: 3, charset: 'ascii', pad: 'zero' }), ['a', '', 'bc', 'd', 'e', 'f']],
  opaque: [T.opaque(3, 'a tag'), Array.from({ length: 6 }, (_, i) => Uint8Array.of(i, 1, 2))],
  bitfield: [T.bitfield(2), [1, 2, 3, 0xffff, 5, 6]],
  array: [T.array('int16', [2, 2]), Array.from({ length: 6 }, (_, i) => Int16Array.of(i, 1, 2, 3))],
  record: [
    record,
    Array.from({ length: 6 }, (_, i) => ({ id: i, at: new Float32Array(6).fill(i), name: `n${i}` })),
    { id: -1, at: new Float32Array(6).fill(9), name: 'fill' },
  ],
};

afterAll(() => {
  process.stdout.write(`replay: ${tally}\n`);
});

withOracle(['h5dump', 'python'], 'a replayed file', () => {
  test('has every type as it was declared', async () => {
    await check((file) => {
      for (const [name, [dtype, values, fill]] of Object.entries(TYPES)) {
        const filled = fill === undefined ? {} : { fill: fill as never };
        file.createDataset(`${name}/scalar`, { dtype, shape: [], ...filled }).write(values[0] as never);
        file.createDataset(`${name}/list`, { dtype, shape: [6], ...filled }).write(values as never);
        file.createDataset(`${name}/none`, { dtype, shape: [3], ...filled });
        const half = { start: [1, 0], count: [1, 3] };
        file
          .createDataset(`${name}/table`, { dtype, shape: [3, 3], chunks: [2, 2], ...filled })
          .write(values.slice(0, 3) as never, half);
        const filters = ['shuffle', { deflate: 3 }] as const;
        file
          .createDataset(`${name}/growing`, { dtype, shape: [4, 3], maxShape: [null, 3], filters, ...filled })
          .write(values.slice(0, 3) as never, half);
      }
    });
  });

  const PIPELINES: readonly (readonly Filter[])[] = [
    [],
    ['shuffle'],
    ['fletcher32'],
    [{ deflate: 1 }],
    ['shuffle', { deflate: 9 }, 'fletcher32'],
    ['fletcher32', 'shuffle', { deflate: 0 }],
  ];

  test('has the chunks and filters that were declared, whatever was written', async () => {
    await check((file) => {
      let n = 0;
      for (const filters of PIPELINES) {
        for (const chunks of [undefined, [1, 1], [4, 5], [3, 100], [100, 100]]) {
          for (const maxShape of [undefined, [20, 30], [null, 17], [null, null], [10, null]] as const) {
            const name = `d${n++}`;
            const dataset = file.createDataset(name, {
              dtype: 'float64',
              shape: [10, 17],
              fill: -1,
              filters,
              ...(chunks && { chunks }),
              ...(maxShape && { maxShape }),
            });
            dataset.write(counted(170));
            dataset.write(counted(6).fill(n), { start: [n % 8, n % 15], count: [3, 2] });
            file
              .createDataset(`part/${name}`, {
                dtype: 'int32',
                shape: [10, 17],
                filters,
                ...(chunks && { chunks }),
                ...(maxShape && { maxShape }),
              })
              .write(Int32Array.of(1, 2, 3, 4), { start: [n % 9, n % 16], count: [2, 2] });
          }
        }
      }
    });
  });

  test('leaves out chunks that were never written', async () => {
    const seen = await check((file) => {
      const dataset = file.createDataset('x', {
        dtype: 'int16',
        shape: [100, 3],
        maxShape: [null, 3],
        chunks: [1, 3],
        fill: 5,
      });
      for (const row of [3, 4, 50, 99]) dataset.write(Int16Array.of(row, 1, 2), { start: [row, 0], count: [1, 3] });
      file
        .createDataset('y', { dtype: 'int16', shape: [100, 3], chunks: [1, 3], filters: [{ deflate: 1 }] })
        .write(Int16Array.of(7, 1, 2), { start: [70, 0], count: [1, 3] });
    });
    expect(seen['/x']?.dataset?.values?.filter((value) => value !== '5')).toHaveLength(12);
    const allocated = runSync('python', ['-c', STORED, join(folder, `ordinary-${files}.h5`)]);
    expect(JSON.parse(allocated)).toEqual({ x: [4, 24], y: [1, expect.any(Number)] });
  });

  test('has no data where there are no elements', async () => {
    await check((file) => {
      file.createDataset('none', { dtype: 'float32', shape: [0] });
      file.createDataset('no rows', { dtype: 'float32', shape: [0, 5], maxShape: [null, 5], chunks: [2, 2] });
      file.createDataset('no columns', { dtype: 'float32', shape: [5, 0], filters: [{ deflate: 2 }] });
      file.createDataset('no columns yet', { dtype: 'float32', shape: [5, 0], maxShape: [5, null], fill: 3 });
      file.createDataset('never', { dtype: 'float32', shape: [0, 5], maxShape: [null, 5], filters: ['shuffle'] });
    });
  });

  test('shows the last shape and the newest values', async () => {
    await check((file) => {
      const options = { dtype: 'float64', shape: [8, 6], maxShape: [null, 6], fill: 0.5 } as const;
      for (const [name, more] of [
        ['plain', {}],
        ['chunked', { chunks: [3, 4] }],
        ['filtered', { chunks: [3, 4], filters: [{ deflate: 1 }] }],
      ] as const) {
        const dataset = file.createDataset(name, { ...options, ...more });
        dataset.write(counted(48));
        file.flushSync();
        dataset.resize([3, 6]);
        file.flushSync();
        dataset.resize([7, 6]);
        dataset.write(counted(6), { start: [5, 0], count: [1, 6] });
        file.flushSync();
        dataset.write(counted(12), { start: [4, 2], count: [3, 4] });
      }
      file.createDataset('smaller', { ...options, chunks: [3, 4] }).write(counted(48));
      file.dataset('smaller').resize([4, 5]);
    });
  });

  test('takes streams over that are whole chunks', async () => {
    const { input, output } = paths();
    const file = File.createSync(input);
    const filters = ['shuffle', { deflate: 6 }] as const;
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [10, 9], chunks: [4, 4], filters, fill: 2 });
    dataset.write(counted(90));
    file.flushSync();
    dataset.write(counted(16), { start: [4, 0], count: [4, 4] }); // a whole chunk again
    dataset.write(counted(2), { start: [1, 5], count: [1, 2] }); // a part of one
    file.closeSync();
    await checkReplay(input, output);
  });

  test('keeps chunks apart that a filter leaves as they are', async () => {
    await check((file) => {
      // Shuffling single bytes does nothing. The second chunk is taken over; those beside it are made anew.
      const filters = ['shuffle'] as const;
      const dataset = file.createDataset('x', { dtype: 'int8', shape: [20], maxShape: [null], chunks: [4], filters });
      dataset.write(Int8Array.of(1), { start: [3], count: [1] });
      dataset.write(Int8Array.of(2, 3, 4, 5), { start: [4], count: [4] });
      dataset.write(Int8Array.of(6, 7), { start: [9], count: [2] });
      dataset.write(Int8Array.of(8, 9, 10, 11), { start: [12], count: [4] });
      dataset.write(Int8Array.of(12), { start: [19], count: [1] });
    });
  });

  test('can be replayed again, and is then the same', async () => {
    const { input, output } = paths();
    const file = File.createSync(input);
    file
      .createDataset('a/x', { dtype: 'float64', shape: [10, 6], chunks: [4, 4], filters: [{ deflate: 1 }] })
      .write(counted(60));
    file.createDataset('a/y', { dtype: 'float64', shape: [10, 6], maxShape: [null, null] }).write(counted(60));
    file.createDataset('a/z', { dtype: 'float64', shape: [3000, 1], chunks: [1, 1] }).write(counted(3000));
    file.group('a').attributes.set('text', ['one', '', 'three']);
    file.closeSync();
    const first = await checkReplay(input, output);
    await replay(output, `${output}.again`);
    const { h5pyDescribe } = await import('../../interop/describe.ts');
    expect(h5pyDescribe(`${output}.again`)).toEqual(first);
    runSync('h5diff', ['-r', output, `${output}.again`]);
  });
});

const STORED = `
import sys, json, h5py
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps({name: [f[name].id.get_num_chunks(), f[name].id.get_storage_size()] for name in f}))
`;
