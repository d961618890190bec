import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import type { H5LogError } from '../../../src/base/errors.ts';
import { select } from '../../../src/space/select.ts';
import { type Description, expectSame, h5pyDescribes } from '../../interop/describe.ts';
import { h5dump, pythonSync, runSync, withOracle } from '../../oracles.ts';
import { full, repeats } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { codeOf, datasetsOf, makeRegularFiles, plainData, withFile } from './regular.ts';

const tally = { files: 0, datasets: 0, values: 0, refused: 0 };
afterAll(() =>
  process.stdout.write(
    `native: ${tally.files} files, ${tally.datasets} datasets with ${tally.values} values equal to h5py's, ${tally.refused} refused\n`,
  ),
);

/** `refused` says which datasets h5wasm cannot read: those must throw UNSUPPORTED, all others must be equal. */
function compareAll(path: string, description: Description, refused: (path: string) => boolean): void {
  tally.files++;
  withFile(path, (file) => {
    for (const [where, values, isNull] of datasetsOf(description)) {
      if (isNull || refused(where)) {
        expect(
          codeOf(() => plainData(file, where)),
          where,
        ).toBe('UNSUPPORTED');
        tally.refused++;
        continue;
      }
      expectSame(plainData(file, where), values, `${path} ${where}`);
      tally.datasets++;
      tally.values += values.length;
    }
  });
}

withOracle(['python', 'h5dump'], 'regular files through the native connector', () => {
  const { folder, names } = makeRegularFiles();
  const at = (name: string): string => join(folder, name);
  const compared = names.filter((name) => !/^(sparse|damaged|lacking|virtual|unlimited|enumerated)/.test(name));
  const seen = h5pyDescribes(compared.map(at));

  test.each(compared.map((name, i) => [name, i] as const))('%s: every dataset is what h5py reads', (name, i) => {
    const description = { ...(seen[i] as Description) };
    // h5py swaps the bytes of big-endian sequences; what is in the file is told by h5dump below.
    delete description['/>i4'];
    // libhdf5 2.0 takes a type that uses less than half of its bits for damage, unless the header has a checksum.
    compareAll(at(name), description, (path) => path === '/eleven bits' && !name.includes('latest'));
  });

  test('sequences of big-endian numbers are what h5dump shows', () => {
    expect(h5dump('-d', '/>i4', at('vlens.h5'))).toContain('(0): (1, 2), (), (5, 6, 7)');
    withFile(at('vlens.h5'), (file) => expect(plainData(file, '/>i4')).toEqual([['1', '2'], [], ['5', '6', '7']]));
  });

  test('big-endian data with enumerations in it, which h5wasm mixes up, is refused; its neighbours are read', () => {
    withFile(at('enumerated.h5'), (file) => {
      for (const path of ['/in a big record', '/in an array'])
        expect(codeOf(() => file.dataset(path).read())).toBe('UNSUPPORTED');
      expect(file.dataset('/in a mixed record').read()).toEqual([
        { n: 5, c: 1 },
        { n: 6, c: 3 },
      ]);
      // libhdf5 goes by the order of single bytes, although it means nothing.
      for (const path of ['/with a byte BE', '/with a byte LE']) {
        expect(file.dataset(path).read()).toEqual([
          { n: 5, b: 1 },
          { n: 6, b: -3 },
        ]);
      }
      expect(file.dataset('/in a little array').read()).toEqual([Int16Array.of(1, 2), Int16Array.of(3, 1)]);
      expect(file.dataset('/big sequences in a big record').read()).toEqual([
        { n: 7, list: Float64Array.of(1.5, 2.5) },
        { n: 8, list: new Float64Array(0) },
      ]);
    });
  });

  describe('filters that h5wasm lacks', () => {
    test.each(['lacking.h5', 'lacking-latest.h5', 'lacking-block.h5'])('%s: throw and name the filter', (name) => {
      withFile(at(name), (file) => {
        for (const path of ['/lzf', '/lzf shuffled']) {
          const error = thrown(() => file.dataset(path).read());
          expect(error.code).toBe('UNSUPPORTED');
          expect(error.message).toContain('lzf (32000)');
          expect(error.message).toContain(path);
          expect(codeOf(() => file.dataset(path).read({ start: [5], count: [1] }))).toBe('UNSUPPORTED');
        }
      });
    });

    test('do no harm where they were not applied: chunks that did not shrink, chunks that are not there', () => {
      const [theirs] = h5pyDescribes([at('lacking.h5')]);
      withFile(at('lacking.h5'), (file) => {
        expect(plainData(file, '/lzf of noise')).toEqual(theirs?.['/lzf of noise']?.dataset?.values);
        expect(file.dataset('/lzf empty').read()).toEqual(new Int32Array(100).fill(7));
      });
    });
  });

  describe('virtual datasets', () => {
    test.each(['/two files', '/half missing', '/same file'])('%s is what h5py reads', (path) => {
      const theirs = JSON.parse(
        pythonSync(
          'import h5py, json, sys\nprint(json.dumps(h5py.File(sys.argv[1])[sys.argv[2]][()].ravel().tolist()))',
          [at('virtual.h5'), path],
        ),
      );
      withFile(at('virtual.h5'), (file) =>
        expect(Array.from(file.dataset(path).read() as Float64Array)).toEqual(theirs),
      );
    });

    test('are as long as their sources are, whatever the header says', () => {
      withFile(at('unlimited.h5'), (file) => {
        expect(file.dataset('/v').shape).toEqual([7]);
        expect(file.dataset('/v').read()).toEqual(Float64Array.of(0, 1, 2, 3, 40, 50, 60));
      });
    });

    test('throw when a source has a filter that h5wasm lacks', () => {
      withFile(at('virtual.h5'), (file) => expect(codeOf(() => file.dataset('/of lzf').read())).toBe('UNSUPPORTED'));
    });
  });

  describe('links', () => {
    test.each([
      ['/soft', 'links.h5', '/g/deep'],
      ['/g/relative', 'links.h5', '/g/deep'],
      ['/out', 'layouts.h5', '/chunked'],
      ['/out group/five', 'layouts.h5', '/five'],
      ['/out absolute', 'layouts.h5', '/contiguous'],
      ['/soft out', 'layouts.h5', '/growing'],
      ['/out and back', 'layouts.h5', '/growing'],
    ])('%s leads to %s %s', (path, name, target) => {
      const [theirs] = h5pyDescribes([at(name)]);
      withFile(at('links.h5'), (file) => {
        expect(file.find(path)?.file.name).toBe(name === 'links.h5' ? file.name : at(name));
        expect(plainData(file, path)).toEqual(theirs?.[target]?.dataset?.values);
      });
    });

    test.each(['/dangling', '/circle', '/out nowhere', '/out no object', '/out circle', '/nothing', '/here/inside'])(
      '%s leads nowhere',
      (path) => {
        withFile(at('links.h5'), (file) => expect(file.find(path)).toBeUndefined());
      },
    );
  });

  describe('a selection', () => {
    const where = {
      'a box': { start: [3, 4], count: [5, 6] },
      'a strided slab': { start: [1, 2], stride: [6, 7], count: [3, 4], block: [2, 3] },
      'every second element': { stride: [2, 2] },
      points: select.points([
        [19, 29],
        [0, 0],
        [7, 7],
        [0, 0],
        [19, 28],
      ]),
      'a union': select.box([0, 0], [2, 3]).or(select.hyperslab({ start: [10, 10], count: [3, 3], stride: [3, 5] })),
      'a difference': select.all().minus(select.box([1, 1], [18, 28])),
      none: select.none(),
    };
    const all = Float64Array.from({ length: 600 }, (_, i) => i);

    test.each(['contiguous', 'chunked', 'growing', 'growing both'])('of %s gives its elements', (path) => {
      withFile(at('layouts.h5'), (file) => {
        const dataset = file.dataset(path);
        const model = (rows: number[][]): number[] => rows.map(([r, c]) => (r as number) * 30 + (c as number));
        expect(dataset.read()).toEqual(all);
        expect(dataset.read(where['a box'])).toEqual(
          Float64Array.from({ length: 30 }, (_, i) => (3 + Math.floor(i / 6)) * 30 + 4 + (i % 6)),
        );
        expect(Array.from(dataset.read(where.points) as Float64Array)).toEqual(
          model([
            [19, 29],
            [0, 0],
            [7, 7],
            [0, 0],
            [19, 28],
          ]),
        );
        expect(Array.from(dataset.read(where['a strided slab']) as Float64Array)).toEqual(
          [1, 2, 7, 8, 13, 14].flatMap((r) => [2, 3, 4, 9, 10, 11, 16, 17, 18, 23, 24, 25].map((c) => r * 30 + c)),
        );
        expect(dataset.read(where['every second element'])).toEqual(
          all.filter((i) => i % 2 === 0 && Math.floor(i / 30) % 2 === 0),
        );
        expect(Array.from(dataset.read(where['a union']) as Float64Array)).toEqual(
          model([
            [0, 0],
            [0, 1],
            [0, 2],
            [1, 0],
            [1, 1],
            [1, 2],
            ...[10, 13, 16].flatMap((r) => [10, 15, 20].map((c) => [r, c])),
          ]),
        );
        expect(dataset.read(where['a difference'])).toEqual(
          all.filter((i) => i < 30 || i >= 570 || i % 30 === 0 || i % 30 === 29),
        );
        expect(dataset.read(where.none)).toEqual(new Float64Array(0));
        expect(dataset.readMany([5, 5, 0, 0, 5, 5], [1, 2])).toEqual(Float64Array.of(155, 156, 0, 1, 155, 156));
        expect(codeOf(() => dataset.read({ start: [15, 0], count: [6, 1] }))).toBe('SELECTION');
      });
    });

    test('works for values that are not numbers', () => {
      withFile(at('vlens.h5'), (file) => {
        expect(file.dataset('/<i4').read(select.points([[2], [0], [2]]))).toEqual([
          Int32Array.of(5, 6, 7),
          Int32Array.of(1, 2),
          Int32Array.of(5, 6, 7),
        ]);
        expect(file.dataset('/in record').read({ start: [2], count: [1] })).toEqual([
          { id: 2, text: 'three ä', list: Float32Array.of(3, 3.5, 4), big: 2000 },
        ]);
      });
    });

    test('goes where the memory selection says, into an array of any type', () => {
      withFile(at('layouts.h5'), (file) => {
        const dataset = file.dataset('chunked');
        const into = new Int16Array(8).fill(-1);
        dataset.read(
          { start: [2, 3], count: [1, 2] },
          { into, memory: { shape: [2, 4], where: { start: [1, 1], count: [1, 2] } } },
        );
        expect(into).toEqual(Int16Array.of(-1, -1, -1, -1, -1, 63, 64, -1));
        expect(
          dataset.read({ start: [2, 3], count: [1, 2] }, { memory: { shape: [3], where: { start: [1], count: [2] } } }),
        ).toEqual(Float64Array.of(0, 63, 64));
        expect(codeOf(() => dataset.read({ count: [1, 2] }, { into: new Int16Array(3) }))).toBe('SHAPE');
      });
    });

    test('gives raw bytes as they are in the file, in its byte order', () => {
      withFile(at('numbers.h5'), (file) => {
        const big = file.dataset('/>i2').read(undefined, { raw: true }) as Uint8Array;
        expect([...big]).toEqual([0, 0, 0, 1, 0x80, 0, 0x7f, 0xff, 0, 5, 0, 6]);
      });
      withFile(at('texts.h5'), (file) =>
        expect(codeOf(() => file.dataset('/variable').read(undefined, { raw: true }))).toBe('UNSUPPORTED'),
      );
    });
  });

  describe('a sparse file of 1 GiB', () => {
    test('is read in parts, without being loaded', () => {
      const before = process.memoryUsage().rss;
      const began = performance.now();
      withFile(at('sparse.h5'), (file) => {
        const wide = file.dataset('wide');
        expect(wide.read({ start: [2 ** 27 - 4], count: [4] })).toEqual(Float64Array.of(0, 2, 0, 0));
        expect(wide.read(select.points([[2 ** 27 - 3], [5], [2 ** 26]]))).toEqual(Float64Array.of(2, 1, 0));
        const chunks = file.dataset('chunks');
        expect(chunks.read({ start: [2 ** 14 - 2, 6], count: [2, 2] })).toEqual(Float64Array.of(4, 4, 4, 3));
      });
      const grown = (process.memoryUsage().rss - before) / 2 ** 20;
      process.stdout.write(
        `native: parts of 1 GiB in ${(performance.now() - began).toFixed(0)} ms, ${grown.toFixed(0)} MiB more memory\n`,
      );
      expect(grown).toBeLessThan(200);
    });

    test('is read whole, piece by piece through the memory of h5wasm', () => {
      withFile(at('sparse.h5'), (file) => {
        const into = new Float64Array(2 ** 24);
        let sum = 0;
        for (let start = full ? 0 : 7 * 2 ** 24; start < 2 ** 27; start += into.length) {
          file.dataset('wide').read({ start: [start], count: [into.length] }, { into });
          sum += into.reduce((total, value) => total + value, 0);
        }
        expect(sum).toBe(full ? 3 : 2);
        expect(file.library.bytes.length).toBeLessThan(256 * 2 ** 20);
      });
    });
  });

  test('damaged data throws and names the dataset', () => {
    withFile(at('damaged.h5'), (file) => {
      const dataset = file.dataset('sum');
      expect(dataset.read({ start: [0], count: [300] })).toEqual(Float64Array.from({ length: 300 }, (_, i) => i));
      const error = thrown(() => dataset.read());
      expect(error.code).toBe('FORMAT');
      expect(error.object).toBe('/sum');
    });
  });

  test('reading leaves the file as it is, and writing throws', () => {
    withFile(at('layouts.h5'), (file) => {
      expect(codeOf(() => file.dataset('chunked').write(new Float64Array(600)))).toBe('READ_ONLY');
      expect(codeOf(() => file.createGroup('/new'))).toBe('READ_ONLY');
      expect(codeOf(() => file.dataset('growing').resize([30, 30]))).toBe('READ_ONLY');
    });
  });

  test('memory of sequences is given back', () => {
    withFile(at('vlens.h5'), (file) => {
      for (let i = 0; i < 200; i++) file.dataset('/in record').read();
      const before = file.library.bytes.length;
      for (let i = 0; i < repeats(20_000); i++) file.dataset('/in record').read();
      expect(file.library.bytes.length).toBe(before);
    });
  });

  test('complex numbers are records of two', () => {
    withFile(at('enumerated.h5'), (file) => {
      expect(file.dataset('/complex').read()).toEqual([
        { r: 1, i: 2 },
        { r: -0, i: -3.5 },
      ]);
    });
  });
});

withOracle('python', 'the files that our own reader is tested with', () => {
  const folder = temporaryDirectory();
  const script = fileURLToPath(new URL('../../interop/make.py', import.meta.url));
  const names = (JSON.parse(runSync('python', [script, folder])) as string[]).filter((name) => !/^many-/.test(name));
  const seen = h5pyDescribes(names.map((name) => join(folder, name)));

  test.each(names.map((name, i) => [name, i] as const))('%s: every dataset is what h5py reads', (name, i) => {
    compareAll(join(folder, name), seen[i] as Description, (path) => path.endsWith('/lzf'));
  });
});

function thrown(work: () => unknown): H5LogError {
  try {
    work();
  } catch (error) {
    return error as H5LogError;
  }
  throw new Error('nothing was thrown');
}
