import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { NewDatasetOptions } from '../../../src/connector/file-session.ts';
import { NativeFile } from '../../../src/connector/native/native-file.ts';
import { T } from '../../../src/dtype/construct.ts';
import { sameType } from '../../../src/dtype/describe.ts';
import type { DType } from '../../../src/dtype/model.ts';
import { NULL_SPACE, SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { select, type Where } from '../../../src/space/select.ts';
import {
  type Description,
  h5pyDescribe,
  h5pyDescribes,
  type Plain,
  plainElements,
  plainType,
  plainValue,
} from '../../interop/describe.ts';
import { h5dump, withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { codeOf, library, makeRegularFiles, plainData, withFile } from './regular.ts';

const tally = { values: 0 };
afterAll(() => process.stdout.write(`native: ${tally.values} values written and read back by h5py\n`));
const folder = temporaryDirectory();
let made = 0;

/** Makes a file, closes it, and gives its path. */
function create(work: (file: NativeFile) => void): string {
  const path = join(folder, `${made++}.h5`);
  const file = NativeFile.create(library, path);
  try {
    work(file);
  } finally {
    file.close();
  }
  return path;
}

const plain = (dtype: DType, shape: readonly number[], more: Partial<NewDatasetOptions> = {}): NewDatasetOptions => ({
  dtype,
  shape,
  maxShape: shape,
  chunks: null,
  filters: [],
  ...more,
});

/** h5wasm marks variable-length UTF-8 as padded with blanks, which means nothing where there is no padding. */
function madeType(dtype: DType): Plain {
  const text = JSON.stringify(plainType(dtype));
  return JSON.parse(text.replaceAll('"variable","zero","utf8"', '"variable","space","utf8"')) as Plain;
}

const RECORD = T.compound({
  id: 'uint16',
  text: T.string(),
  to: T.reference,
  inner: T.compound({ x: 'float32', y: 'int64' }),
});
const VALUES: [name: string, dtype: DType, values: unknown[]][] = [
  ...(['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32'] as const).map(
    (name) => [name, name, [0, 1, 100]] as [string, DType, unknown[]],
  ),
  ['int64', 'int64', [0n, -(2n ** 63n), 2n ** 63n - 1n]],
  ['uint64', 'uint64', [0n, 1n, 2n ** 64n - 1n]],
  ['float32', 'float32', [0, -1.5, Number.POSITIVE_INFINITY]],
  ['float64', 'float64', [0, -1.5e300, Number.NaN]],
  ['text', T.string(), ['', 'Grüße', '日本 😀']],
  ['ascii text', T.string({ charset: 'ascii' }), ['', 'a', 'bcd']],
  ['utf8 of 8', T.string({ length: 8, pad: 'space' }), ['', 'äöü', 'abcdefgh']],
  ['ascii of 8', T.string({ length: 8, pad: 'zero', charset: 'ascii' }), ['', 'a', 'abcdefg']],
  ['reference', T.reference, ['/', '', '/target/data']],
  [
    'record',
    RECORD,
    [
      { id: 1, text: 'one', to: '/target', inner: { x: 0.5, y: 5n } },
      { id: 2, text: '', to: '', inner: { x: -0.5, y: -5n } },
      { id: 65535, text: 'drei ß', to: '/', inner: { x: 0, y: 2n ** 62n } },
    ],
  ],
];
const REFUSED: [string, DType][] = [
  ['bool', T.bool],
  ['enum', T.enum('int16', { A: 1 })],
  ['array', T.array('int32', [2])],
  ['vlen', T.vlen('float64')],
  ['opaque', T.opaque(4)],
  ['bitfield', T.bitfield(2)],
  ['float16', 'float16'],
  ['big-endian', T.bigEndian('int32')],
  ['fixed text', T.string({ length: 8 })],
  ['record with a bool', T.compound({ a: T.bool })],
];

withOracle(['python', 'h5dump'], 'what the native connector makes', () => {
  // Made before the tests, so that h5py is asked once for all.
  const files = VALUES.map(([name, dtype, values]) => ({
    name,
    dtype,
    values,
    path: create((file) => {
      file.createDataset('/target/data', plain('int8', [1]));
      file.createDataset('/deep/er/whole', plain(dtype, [3]));
      file.createDataset('/deep/er/in chunks', plain(dtype, [3], { chunks: [2] }));
      for (const where of ['/deep/er/whole', '/deep/er/in chunks']) file.dataset(where).write(values);
      file.setAttribute(
        '/',
        name,
        dtype,
        simpleSpace([9]),
        Array.from({ length: 9 }, (_, i) => values[i % 2]),
      );
      file.setAttribute('/', name, dtype, simpleSpace([3]), values);
      file.setAttribute('/target/data', 'one', dtype, SCALAR_SPACE, values[1]);
    }),
  }));
  const seenOfAll = h5pyDescribes(files.map(({ path }) => path));

  test.each(files.map((file, i) => [file.name, i] as const))('a dataset of %s is what h5py reads', (_name, i) => {
    const { dtype, values, path } = files[i] as (typeof files)[0];
    const seen = seenOfAll[i] as Description;
    const meant = values.map((value) => plainValue(dtype, value));
    withFile(path, (file) => {
      for (const where of ['/deep/er/whole', '/deep/er/in chunks']) {
        expect(sameType(file.dataset(where).parts.dtype, dtype), 'the type that was asked for').toBe(true);
        expect(plainData(file, where)).toEqual(meant);
        expect(seen[where]?.dataset?.type).toEqual(madeType(dtype));
        expect(seen[where]?.dataset?.values).toEqual(meant);
        tally.values += values.length;
      }
    });
    h5dump(path);
  });

  test.each(files.map((file, i) => [file.name, i] as const))('an attribute of %s is what h5py reads', (name, i) => {
    const { dtype, values, path } = files[i] as (typeof files)[0];
    const seen = seenOfAll[i] as Description;
    const elements = plainElements(dtype, simpleSpace([3]), values);
    expect(seen['/']?.attributes).toEqual([[name, madeType(dtype), [3], elements]]);
    expect(seen['/target/data']?.attributes).toEqual([['one', madeType(dtype), [], [plainValue(dtype, values[1])]]]);
    withFile(path, (file) => expect(file.now(file.structure.attribute(file.structure.root, name))).toHaveLength(3));
    tally.values += 4;
  });

  test('scalars, empty datasets and datasets that grow', () => {
    const path = create((file) => {
      file.createDataset('/scalar', plain('float64', []));
      file.dataset('/scalar').write(2.5);
      file.createDataset('/text', plain(T.string(), []));
      file.dataset('/text').write('one');
      file.createDataset('/empty', plain('int32', [0, 4]));
      file.createDataset('/unwritten', plain('int32', [2, 2]));
      file.createDataset('/growing', plain('int32', [0, 4], { maxShape: [null, 4] }));
      for (let row = 0; row < 5; row++) {
        file.dataset('/growing').resize([row + 1, 4]);
        file.dataset('/growing').write(Int32Array.of(row, row, row, row), { start: [row, 0], count: [1, 4] });
      }
      expect(codeOf(() => file.dataset('/growing').resize([5, 5]))).toBe('SHAPE');
      expect(codeOf(() => file.dataset('/unwritten').resize([1, 2]))).toBe('UNSUPPORTED');
      file.dataset('/growing').resize([3, 4]);
      file.dataset('/growing').resize([4, 4]);
    });
    const seen = h5pyDescribe(path);
    expect(seen['/scalar']?.dataset).toMatchObject({ shape: [], values: [plainValue('float64', 2.5)] });
    expect(seen['/text']?.dataset).toMatchObject({ shape: [], values: ['one'] });
    expect(seen['/empty']?.dataset).toMatchObject({ shape: [0, 4], values: [] });
    expect(seen['/unwritten']?.dataset?.values).toEqual(['0', '0', '0', '0']);
    expect(seen['/growing']?.dataset).toMatchObject({
      shape: [4, 4],
      max: [null, 4],
      values: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0].map(String),
    });
    tally.values += 24;
  });

  test('every object of a dataset shows its shape, whoever changed it', () => {
    const path = create((file) => {
      file.createDataset('/d', plain('int32', [0], { maxShape: [null], chunks: [4] }));
      const [one, other] = [file.dataset('/d'), file.dataset('/d')];
      file.createHardLink('/alias', '/d');
      const alias = file.dataset('/alias');
      const { generation } = file;
      for (let i = 0; i < 10; i++) {
        one.resize([i + 1]);
        other.write([i], { start: [i], count: [1] });
      }
      expect(file.generation - generation, 'times that the structure was read anew').toBeLessThan(2);
      for (const each of [one, other, alias]) {
        expect(each.shape).toEqual([10]);
        expect(each.read()).toEqual(Int32Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
      }
      file.setAttribute('/d', 'a', 'int8', SCALAR_SPACE, 1);
      alias.resize([3]);
      expect(one.read()).toEqual(Int32Array.of(0, 1, 2));
      expect(codeOf(() => other.read({ start: [3], count: [1] }))).toBe('SELECTION');
    });
    expect(h5pyDescribe(path)['/d']?.dataset).toMatchObject({ shape: [3], values: ['0', '1', '2'] });
  });

  test.each([
    ['deflate', { deflate: 6 }, 1],
    ['shuffle', 'shuffle', 2],
    ['fletcher32', 'fletcher32', 3],
  ] as const)('a dataset with %s, chunks chosen if none are given', (_name, filter, id) => {
    const data = Int32Array.from({ length: 600 }, (_, i) => i);
    const path = create((file) => {
      file.createDataset('/given', plain('int32', [20, 30], { filters: [filter], chunks: [7, 8] }));
      file.createDataset('/chosen', plain('int32', [20, 30], { filters: [filter] }));
      for (const name of ['/given', '/chosen']) file.dataset(name).write(data);
    });
    const seen = h5pyDescribe(path);
    for (const name of ['/given', '/chosen']) {
      expect(seen[name]?.dataset?.filters).toEqual([id]);
      expect(seen[name]?.dataset?.values).toEqual(Array.from(data, String));
      tally.values += 600;
    }
    expect(seen['/given']?.dataset?.chunk).toEqual([7, 8]);
  });

  test('a dataset of 1 GiB is made without its data', () => {
    const path = create((file) => {
      file.createDataset('/wide', plain('float64', [2 ** 27]));
      expect(file.dataset('/wide').read({ start: [2 ** 27 - 1] })).toEqual(Float64Array.of(0));
    });
    expect(statSync(path).size).toBeLessThan(100_000);
  });

  test('links lead where they should', () => {
    const other = create((file) => {
      file.createDataset('/there', plain('int8', [2]));
      file.dataset('/there').write([4, 5]);
    });
    const path = create((file) => {
      file.createGroup('/g/h');
      file.createDataset('/g/data', plain('int8', [2]));
      file.dataset('/g/data').write([1, 2]);
      file.createSoftLink('/soft', '/g/data');
      file.createHardLink('/hard', '/g/data');
      file.createExternalLink('/out', other.slice(other.lastIndexOf('/') + 1), '/there');
      expect(file.dataset('/soft').read()).toEqual(Int8Array.of(1, 2));
      expect(file.dataset('/out').read()).toEqual(Int8Array.of(4, 5));
      expect(codeOf(() => file.dataset('/out').write([1, 1]))).toBe('READ_ONLY');
      file.dataset('/hard').write([7], { start: [1], count: [1] });
      expect(file.dataset('/g/data').read()).toEqual(Int8Array.of(1, 7));
      for (const name of ['/soft', '/hard', '/out', '/g', '/g/data'])
        expect(codeOf(() => file.createGroup(name))).toBe('EXISTS');
      expect(codeOf(() => file.createGroup('/g/data/below'))).toBe('EXISTS');
      expect(codeOf(() => file.createHardLink('/x', '/nowhere'))).toBe('NOT_FOUND');
      file.createSoftLink('/dangling', '/nowhere');
      expect(codeOf(() => file.createGroup('/dangling'))).toBe('EXISTS');
      expect(codeOf(() => file.refuseRemoval('/soft'))).toBe('UNSUPPORTED');
    });
    expect(h5pyDescribe(path)['/']?.links).toEqual([
      ['g', 'hard'],
      ['soft', 'soft', '/g/data'],
      ['hard', 'hard'],
      ['out', 'external', other.slice(other.lastIndexOf('/') + 1), '/there'],
      ['dangling', 'soft', '/nowhere'],
    ]);
  });

  test('attributes are replaced and deleted', () => {
    const path = create((file) => {
      file.createGroup('/g');
      file.setAttribute('/g', 'a', 'float64', SCALAR_SPACE, 1);
      file.setAttribute('/g', 'b', T.string(), SCALAR_SPACE, 'two');
      file.setAttribute('/g', 'a', T.string(), SCALAR_SPACE, 'now a text');
      file.setAttribute('/g', 'c', 'int8', simpleSpace([0]), []);
      file.deleteAttribute('/g', 'b');
      expect(codeOf(() => file.deleteAttribute('/g', 'b'))).toBe('NOT_FOUND');
      expect(codeOf(() => file.setAttribute('/g', 'null', 'float64', NULL_SPACE, null))).toBe('UNSUPPORTED');
      expect(
        codeOf(() => file.setAttribute('/g', 'long', 'float64', simpleSpace([9000]), new Float64Array(9000))),
      ).toBe('UNSUPPORTED');
      expect([...(file.find('/g')?.node.attributes.keys() ?? [])]).toEqual(['a', 'c']);
    });
    expect(h5pyDescribe(path)['/g']?.attributes?.map(([name, , , values]) => [name, values])).toEqual([
      ['a', ['now a text']],
      ['c', []],
    ]);
  });

  describe('what h5wasm cannot make throws UNSUPPORTED and leaves nothing behind', () => {
    test.each(REFUSED)('%s', (_name, dtype) => {
      create((file) => {
        expect(codeOf(() => file.createDataset('/g/x', plain(dtype, [2])))).toBe('UNSUPPORTED');
        expect(codeOf(() => file.setAttribute('/', 'x', dtype, SCALAR_SPACE, 1))).toBe('UNSUPPORTED');
        expect(file.structure.root.links.size).toBe(0);
        expect(file.structure.root.attributes.size).toBe(0);
      });
    });

    test('a fill value', () => {
      create((file) => {
        expect(codeOf(() => file.createDataset('/x', plain('int8', [2], { fill: 5 })))).toBe('UNSUPPORTED');
        expect(file.structure.root.links.size).toBe(0);
      });
    });

    test('two filters', () => {
      create((file) => {
        const two = plain('int8', [2], { filters: ['shuffle', { deflate: 1 }] });
        expect(codeOf(() => file.createDataset('/x', two))).toBe('UNSUPPORTED');
        expect(file.structure.root.links.size).toBe(0);
      });
    });
  });

  test('selections of any kind are written, and nothing else is touched', () => {
    const next = random(seed('native writes'));
    const integer = (below: number): number => Math.floor(next() * below);
    const model = new Float64Array(600);
    const path = create((file) => {
      file.createDataset('/whole', plain('float64', [20, 30]));
      file.createDataset('/chunked', plain('float64', [20, 30], { chunks: [7, 8], filters: [{ deflate: 1 }] }));
      for (let round = 0; round < repeats(300); round++) {
        const start = [integer(20), integer(30)] as [number, number];
        const count = [1 + integer(20 - start[0]), 1 + integer(30 - start[1])] as [number, number];
        const points = Array.from({ length: 1 + integer(9) }, () => [integer(20), integer(30)]);
        const where = [
          { start, count },
          { start, stride: [3, 4], count: count.map((n, d) => Math.ceil(n / (d === 0 ? 3 : 4))) },
          select.points(points),
          select.box(start, count).or(select.points(points)),
          select.box(start, count).xor(select.box([2, 2], [9, 9])),
        ][round % 5] as Where;
        // Which elements are meant is what a read of their positions gives.
        const positions = positionsOf(where);
        const data = Float64Array.from(positions, () => next());
        for (const name of ['/whole', '/chunked']) file.dataset(name).write(data, where);
        positions.forEach((at, i) => {
          model[at] = data[i] as number;
        });
      }
      file.dataset('/whole').writeMany(Float64Array.of(1, 2, 3, 4), [0, 0, 0, 1], [1, 2]);
      file.dataset('/chunked').writeMany(Float64Array.of(1, 2, 3, 4), [0, 0, 0, 1], [1, 2]);
      model.set([1, 3, 4]);
      for (const name of ['/whole', '/chunked']) expect(file.dataset(name).read()).toEqual(model);
    });
    const seen = h5pyDescribe(path);
    for (const name of ['/whole', '/chunked'])
      expect(seen[name]?.dataset?.values).toEqual(Array.from(model, (x) => plainValue('float64', x)));
    tally.values += 1200;

    /** Positions in row-major order of the elements, by reading a dataset of them. */
    function positionsOf(where: Where): number[] {
      return Array.from(positions.read(where) as Int32Array);
    }
  });

  const numbering = create((file) => {
    file.createDataset('/n', plain('int32', [20, 30]));
    file.dataset('/n').write(Int32Array.from({ length: 600 }, (_, i) => i));
  });
  const numbered = NativeFile.open(library, numbering, 'r');
  const positions = numbered.dataset('/n');
  afterAll(() => numbered.close());
});

withOracle('python', 'files of h5py that the native connector changes', () => {
  const { folder: source } = makeRegularFiles();
  const copy = (name: string): string => {
    const path = join(folder, `${made++}-${name}`);
    copyFileSync(join(source, name), path);
    return path;
  };

  test.each(['numbers.h5', 'numbers-latest.h5', 'numbers-block.h5'])('%s: every type can be written', (name) => {
    const path = copy(name);
    const before = h5pyDescribe(path);
    const changed: Record<string, unknown> = {};
    withFile(
      path,
      (file) => {
        for (const [where, facts] of Object.entries(before)) {
          if (!facts.dataset || where === '/eleven bits') continue;
          const dataset = file.dataset(where);
          const values = Array.from(dataset.read() as ArrayLike<unknown>).reverse();
          dataset.write(values);
          changed[where] = [...(facts.dataset.values ?? [])].reverse();
        }
      },
      'r+',
    );
    const after = h5pyDescribe(path);
    for (const [where, values] of Object.entries(changed)) {
      expect(after[where]?.dataset?.values, where).toEqual(values);
      tally.values += (values as unknown[]).length;
    }
  });

  test.each(['compounds.h5', 'vlens.h5', 'texts.h5', 'filters.h5', 'references-latest.h5'])(
    '%s: every type can be written',
    (name) => {
      const path = copy(name);
      const before = h5pyDescribe(path);
      // h5py reads big-endian sequences wrong; region references are paths to us, which says less than they do; and a text
      // that fills its 8 bytes has no room for the NUL that should end it.
      const left = ['/>i4', '/regions', '/zero'];
      withFile(
        path,
        (file) => {
          for (const [where, facts] of Object.entries(before)) {
            if (!facts.dataset || left.includes(where)) continue;
            const dataset = file.dataset(where);
            dataset.write(Array.from(dataset.read() as ArrayLike<unknown>).reverse());
          }
        },
        'r+',
      );
      const after = h5pyDescribe(path);
      for (const [where, facts] of Object.entries(before)) {
        if (!facts.dataset || left.includes(where)) continue;
        const values = [...(facts.dataset.values ?? [])].reverse();
        expect(after[where]?.dataset?.values, where).toEqual(values);
        tally.values += values.length;
      }
    },
  );

  test('a dataset with a filter that h5wasm lacks is not written', () => {
    const path = copy('lacking.h5');
    withFile(
      path,
      (file) => expect(codeOf(() => file.dataset('/lzf').write(new Int32Array(1000)))).toBe('UNSUPPORTED'),
      'r+',
    );
    expect(h5pyDescribe(path)['/lzf']?.dataset?.values).toEqual(
      Array.from({ length: 1000 }, (_, i) => String(Math.floor(i / 100))),
    );
  });

  test('the structure is what it is after each change', () => {
    const path = copy('layouts-latest.h5');
    withFile(
      path,
      (file) => {
        for (let i = 0; i < 50; i++) {
          file.createDataset(`/many/d${i}`, plain('int32', [4]));
          file.setAttribute(`/many/d${i}`, 'i', 'int32', SCALAR_SPACE, i);
          expect(file.find('/many')?.node.links.size).toBe(i + 1);
        }
      },
      'r+',
    );
    expect(h5pyDescribe(path)['/many/d49']?.attributes?.[0]?.[3]).toEqual(['49']);
  });
});
