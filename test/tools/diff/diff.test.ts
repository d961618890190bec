import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, type DType, File, T } from 'h5log';
import { type Diff, diff, list, replay } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5log, intoHead, onTerminal, slow } from '../../cli/command.ts';
import { count } from '../../counts.ts';
import { oracle, pythonSync, withOracle } from '../../oracles.ts';
import { folder, misread, readable } from '../../original/fixtures.ts';
import { runNode } from '../../process.ts';
import { repeats, seed, some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { classicFile, cutFile, damagedTable, fileOfRanks, regularFile } from '../samples.ts';

const fresh = (name = 'a.h5'): string => join(temporaryDirectory(), name);

async function logFile(fill: (file: File) => void): Promise<string> {
  const path = fresh();
  const file = await File.create(path);
  fill(file);
  await file.close();
  return path;
}

const brief = ({ objects, onlyInA, onlyInB }: Diff) => ({
  objects: objects.map(({ kind, path, name, notes, differences }) => [
    kind,
    name ? `${path} ${name}` : path,
    differences,
    ...notes,
  ]),
  onlyInA,
  onlyInB,
});

/** The files of the original that can be read as a whole. */
const whole = [...readable, ...misread.filter((name) => !name.includes('merge'))];

describe('diff of files of the original', () => {
  test.each(some(whole, 'files to compare'))(
    '%s is the same as itself and as the regular file made of it',
    async (name) => {
      const path = join(folder, name);
      const replayed = fresh();
      await replay(path, replayed);
      for (const [a, b] of [
        [path, path],
        [path, replayed],
        [replayed, path],
        [replayed, replayed],
      ] as const) {
        const found = await diff(a, b);
        expect(brief(found)).toEqual({ objects: [], onlyInA: [], onlyInB: [] });
        expect(found.same).toBe(true);
      }
      const { objects } = await list(path, { recursive: true, verbose: true });
      const attributes = objects.reduce((sum, object) => sum + (object.attributes?.length ?? 0), 0);
      expect((await diff(path, replayed)).compared).toBe(objects.length + attributes);
    },
  );

  test('how a table is written makes no difference, what was written does', async () => {
    const variants = readable.filter((name) => name.startsWith('mix_2r'));
    expect(variants.length).toBeGreaterThan(6);
    for (const name of variants) expect((await diff(join(folder, 'mix_2r.h5'), join(folder, name))).same).toBe(true);
    const found = await diff(join(folder, 'mix_1r.h5'), join(folder, 'mix_2r.h5'));
    expect(found.objects[0]?.notes).toEqual(['shape differs: [4x10] and [8x10]']);
    expect(found.same).toBe(false);
  });
});

describe('diff of fresh files', () => {
  test('of several ranks, with subfiles, and replayed are the same until an element is written', slow, async () => {
    const [one, several] = [await fileOfRanks(2), await fileOfRanks(4, 2)];
    expect(brief(await diff(one, several))).toEqual({ objects: [], onlyInA: [], onlyInB: [] });
    const replayed = fresh();
    await replay(several, replayed);
    expect((await diff(one, replayed)).same).toBe(true);
    const file = await File.open(several, { mode: 'r+' });
    file.dataset('/run/packed').write([-7], { start: [17, 3], count: [1, 1] });
    await file.close();
    for (const other of [one, replayed]) {
      const { objects } = await diff(other, several);
      expect(objects).toMatchObject([{ kind: 'dataset', path: '/run/packed', differences: 1, notes: [] }]);
      expect(objects[0]?.values).toMatchObject([{ position: [17, 3], within: '', b: -7 }]);
    }
  });

  test('structure, types, shapes, attributes, links', async () => {
    const a = await logFile((file) => {
      file.createDataset('/type', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
      file.createDataset('/shape', { dtype: 'int8', shape: [3] });
      file.createDataset('/kind', { dtype: 'int8', shape: [] });
      file.createDataset('/only/a', { dtype: 'int8', shape: [] });
      file.createSoftLink('/link', '/type');
      file.createGroup('/same');
      file.attributes.set('title', 'one');
      file.attributes.set('gone', 1);
      file.attributes.set('list', [1, 2, 3]);
      file.attributes.set('typed', 1);
    });
    const b = await logFile((file) => {
      file.createDataset('/type', { dtype: 'float64', shape: [3] }).write([1, 2.5, 3]);
      file.createDataset('/shape', { dtype: 'int8', shape: [3, 1] });
      file.createGroup('/kind');
      file.createDataset('/only/b', { dtype: 'int8', shape: [] });
      file.createSoftLink('/link', '/shape');
      file.createGroup('/same');
      file.attributes.set('title', 'two');
      file.attributes.set('list', [1, 9, 3]);
      file.attributes.set('typed', 1n);
    });
    const found = await diff(a, b);
    expect(brief(found)).toEqual({
      objects: [
        ['attribute', '/ list', 1],
        ['attribute', '/ title', 1],
        ['attribute', '/ typed', 1, 'type differs: float64 and int64'],
        ['link', '/link', 1, 'a soft link to /type and a soft link to /shape'],
        ['dataset', '/kind', 1, 'a dataset and a group'],
        ['dataset', '/shape', 1, 'shape differs: [3] and [3x1]'],
        ['dataset', '/type', 2, 'type differs: int32 and float64'],
      ],
      onlyInA: ['/ gone', '/only/a'],
      onlyInB: ['/only/b'],
    });
    expect(found.differences).toBe(8 + 3);
    const excludePaths = ['/only', 'kind', '/shape', '/type', '/link'];
    expect(brief(await diff(a, b, { excludePaths })).objects.map(([kind]) => kind)).toEqual([
      'attribute',
      'attribute',
      'attribute',
    ]);
    expect((await diff(a, b, { object: '/same' })).same).toBe(true);
    const other = await diff(a, b, { object: '/type', otherObject: '/shape' });
    expect(other.objects).toMatchObject([{ path: '/type', otherPath: '/shape', differences: 2 }]);
    await expect(diff(a, b, { object: '/nothing' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(diff(a, b, { delta: 1, relative: 1 })).rejects.toMatchObject({ code: 'OPTION' });
    await expect(diff(a, b, { delta: -1 })).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('values of every type', async () => {
    const pair = T.compound({ n: 'int16', list: T.array('float32', [2]), text: T.string({ length: 4 }) });
    const colour = T.enum('int8', { RED: 0, GREEN: 1 });
    const made = (change: number) =>
      logFile((file) => {
        const put = <D extends DType>(path: string, dtype: D, values: unknown): void => {
          const list = values as unknown[];
          (file.createDataset(path, { dtype, shape: [list.length] }) as Dataset).write(list as never);
        };
        // Numbers that a double cannot tell apart, and bytes that are NaNs of a double.
        put('/large', 'int64', [2n ** 62n + BigInt(change), -1n - BigInt(change), 5n]);
        put('/nan', 'float64', [Number.NaN, -0, Infinity, change]);
        put('/pairs', pair, [
          { n: 1, list: [1, 2 + change], text: 'ab' },
          { n: 2, list: [3, 4], text: change ? 'cd' : 'ab' },
        ]);
        put('/colour', colour, [0, change]);
        put('/opaque', T.opaque(2), [Uint8Array.of(1, change)]);
        put('/flag', T.bool, [change === 1]);
      });
    const [a, b] = [await made(0), await made(1)];
    expect((await diff(a, a)).same).toBe(true);
    const found = await diff(a, b);
    const values = found.objects.map(({ path, values: list }) => [
      path,
      ...list.map(({ position, within, texts }) => [position, within, ...texts]),
    ]);
    expect(values).toEqual([
      ['/colour', [[1], '', 'RED', 'GREEN']],
      ['/flag', [[0], '', 'FALSE', 'TRUE']],
      ['/large', [[0], '', '4611686018427387904', '4611686018427387905'], [[1], '', '-1', '-2']],
      ['/nan', [[3], '', '0', '1']],
      ['/opaque', [[0], '', '01:00', '01:01']],
      ['/pairs', [[0], '.list[1]', '2', '3'], [[1], '.text', '"ab"', '"cd"']],
    ]);
    expect(brief(await diff(a, b, { delta: 1 })).objects.map(([, path]) => path)).toEqual([
      '/colour',
      '/flag',
      '/opaque',
      '/pairs',
    ]);
  });

  test('of half a billion elements in bounded memory', slow, async () => {
    const size = 500_000_000;
    const made = (value: number) =>
      logFile((file) => {
        const d = file.createDataset('/d', { dtype: 'int8', shape: [size], fill: 3 });
        d.write(new Int8Array(1_000_000).fill(1), { start: [250_000_000], count: [1_000_000] });
        d.write([value], { start: [size - 1], count: [1] });
      });
    const [a, b] = [await made(1), await made(2)];
    const { stdout, stderr } = await runNode(new URL('./memory.ts', import.meta.url), [a, b]);
    expect(stderr).toBe('');
    const { values, lines, compared, printed } = JSON.parse(stdout) as Record<
      'values' | 'lines' | 'compared' | 'printed',
      number
    >;
    expect(values).toBe(1);
    expect(lines).toBeGreaterThan(100_000);
    // The process itself takes about 120.
    expect(compared).toBeLessThan(300);
    expect(printed).toBeLessThan(400);
    process.stdout.write(
      `diff: 2 x 500 MB compared in ${Math.round(compared)} MiB of memory, 4 million values printed in ${Math.round(printed)} MiB\n`,
    );
  });
});

withOracle(['python', 'h5diff'], 'diff beside h5diff', () => {
  /** Differences by dataset, as h5diff counts them. */
  function theirs(a: string, b: string, ...options: string[]): { code: number | null; counts: Map<string, number> } {
    const { status, stdout } = spawnSync(oracle('h5diff') as string, ['-v', ...options, a, b], { encoding: 'utf8' });
    const counts = new Map<string, number>();
    for (const [, path, rest] of stdout.matchAll(/^dataset: <(.*?)> and .*\n([\s\S]*?differences found)$/gm)) {
      const count = Number(/(\d+) differences found$/.exec(rest as string)?.[1]);
      if (count > 0) counts.set(path as string, count);
    }
    return { code: status, counts };
  }

  /** A log file with the contents of a regular one. */
  async function logged(path: string): Promise<string> {
    const from = await File.open(path);
    const copy = fresh('log.h5');
    const to = await File.create(copy);
    for (const [name, child] of from.children()) {
      const dataset = child as Dataset;
      const made = to.createDataset(`/${name}`, { dtype: dataset.dtype, shape: dataset.shape }) as Dataset;
      made.write((await dataset.read()) as never);
      made.attributes.set('same', 1n);
    }
    await to.close();
    await from.close();
    return copy;
  }

  test('the same exit codes and counts, logs or regular files, whatever is tolerated', slow, async () => {
    const from = seed('random pairs');
    const script = readFileSync(new URL('./pair.py', import.meta.url), 'utf8');
    const pairs = repeats(30);
    let compared = 0;
    for (let n = 0; n < pairs; n++) {
      const [a, b] = [fresh('a.h5'), fresh('b.h5')];
      pythonSync(script, [a, b, String(from + n)]);
      const [logA, logB] = [await logged(a), await logged(b)];
      expect((await diff(a, logA)).same).toBe(true);
      for (const [options, flags] of [
        [{}, []],
        [{ delta: 3 }, ['-d', '3']],
        [{ relative: 0.07 }, ['-p', '0.07']],
      ] as const) {
        const expected = theirs(a, b, ...flags);
        for (const [x, y] of [
          [a, b],
          [logA, b],
          [a, logB],
          [logA, logB],
        ] as const) {
          const found = await diff(x, y, { ...options, listed: 1e6 });
          expect(found.same ? 0 : 1).toBe(expected.code);
          // h5diff counts the letters of a text.
          const counts = new Map<string, number>();
          for (const { path, values } of found.objects) {
            const letters = values.reduce(
              (sum, { a: left, b: right }) =>
                sum + (typeof left === 'string' && /^[a-z]+$/.test(left) ? lettersThatDiffer(left, String(right)) : 1),
              0,
            );
            counts.set(path, letters);
          }
          expect(counts).toEqual(expected.counts);
          compared++;
        }
      }
    }
    count('diff as h5diff', { pairs, comparisons: compared });
  });

  function lettersThatDiffer(a: string, b: string): number {
    let count = 0;
    for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) count++;
    return count;
  }

  test('regular files with every kind of object: the same, and what h5py changed', slow, async () => {
    const a = regularFile();
    const b = fresh('b.h5');
    copyFileSync(a, b);
    expect(await diff(a, b)).toMatchObject({ same: true, objects: [] });
    pythonSync(
      `import h5py, sys
with h5py.File(sys.argv[1], 'r+') as f:
    f['text'][1] = 'zwei'
    f['vlen'][1] = [9]
    f['references'][0] = f['scalar'].ref
    f['compound'][1] = (3, 5.)
    f['chunked'][9, 9] = 1
    f['group'].attrs['depth'] = 2
    del f['soft']
    f['soft'] = h5py.SoftLink('/grid')
    del f['type']
    import numpy
    f['type'] = numpy.dtype('f4')`,
      [b],
    );
    expect(brief(await diff(a, b))).toEqual({
      objects: [
        ['link', '/soft', 1, 'a soft link to /x and a soft link to /grid'],
        ['datatype', '/type', 1, 'the type float64 and the type float32'],
        ['dataset', '/chunked', 1],
        ['dataset', '/compound', 1],
        ['attribute', '/group depth', 1],
        ['dataset', '/references', 1],
        ['dataset', '/text', 1],
        ['dataset', '/vlen', 1],
      ],
      onlyInA: [],
      onlyInB: [],
    });
  });
});

withOracle('python', 'diff of committed types', () => {
  test('their attributes count', () => {
    const make = (path: string, value: number): string => {
      const code = "import h5py, numpy, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n    f['t'] = numpy.dtype('i4')\n";
      pythonSync(`${code}    f['t'].attrs['a'] = ${value}`, [path]);
      return path;
    };
    const [a, b, c] = [make(fresh('one.h5'), 1), make(fresh('two.h5'), 2), make(fresh('three.h5'), 1)];
    return Promise.all([diff(a, b), diff(a, c)]).then(([other, same]) => {
      expect(brief(other)).toMatchObject({ objects: [['attribute', '/t a', 1]] });
      expect(same.same).toBe(true);
    });
  });
});

describe('h5log diff', () => {
  const pair = async (): Promise<[string, string]> => {
    const made = (values: number[], units: string) =>
      logFile((file) => {
        const x = file.createDataset('/x', { dtype: 'float64', shape: [2, 3] });
        x.write(values);
        x.attributes.set('units', units);
        file.createGroup(`/only in ${units}`);
      });
    return [await made([1, 0, 3, 4, Number.NaN, 6], 'K'), await made([1, 0.5, 3, 5, Number.NaN, 6], 'C')];
  };

  test('default, -r, -v, -q, -n, -p, --json and their exit codes', slow, async () => {
    const [a, b] = await pair();
    const plain = await h5log('diff', a, b);
    expect(plain).toEqual({
      code: 1,
      stderr: '',
      stdout: [
        `only in ${b}: </only in C>`,
        `only in ${a}: </only in K>`,
        'dataset: </x> and </x>',
        '2 differences found',
        'attribute: <units of </x>> and <units of </x>>',
        '1 difference found',
        '',
      ].join('\n'),
    });
    const table = [
      'dataset: </x> and </x>',
      'position        A               B               difference',
      '-'.repeat(60),
      '[ 0 1 ]         0               0.5             0.5',
      '[ 1 0 ]         4               5               1',
      '2 differences found',
    ];
    expect((await h5log('diff', '-r', a, b, '/x')).stdout).toBe(
      [
        ...table,
        'attribute: <units of </x>> and <units of </x>>',
        'position        A               B               difference',
        '-'.repeat(60),
        '                "K"             "C"',
        '1 difference found',
        '',
      ].join('\n'),
    );
    expect((await h5log('diff', '-r', '-n', '1', a, b, '/x')).stdout.split('\n')).toEqual(
      expect.arrayContaining(['[ 0 1 ]         0               0.5             0.5', '2 differences found']),
    );
    const relative = await h5log('diff', '-r', '-p', '0.2', a, b);
    expect(relative.stdout).toContain(
      '[ 0 1 ]         0               0.5             0.5             not comparable\n',
    );
    expect(relative.stdout).toContain('[ 1 0 ]         4               5               1               0.25\n');
    expect(await h5log('diff', '-q', a, b)).toEqual({ code: 1, stdout: '', stderr: '' });
    expect(await h5log('diff', a, a)).toEqual({ code: 0, stdout: '', stderr: '' });
    const all = await h5log('diff', '-v', a, a);
    expect(all.stdout).toMatch(/^group {2}: <\/> and <\/>\n0 differences found\n/);
    expect(all.code).toBe(0);
    const json = await h5log('diff', '--json', a, b);
    expect(JSON.parse(json.stdout)).toEqual(JSON.parse(JSON.stringify(await diff(a, b))));
    expect(json.code).toBe(1);
    const excluded = await h5log(
      'diff',
      '--exclude-path',
      '/x',
      '--exclude-path',
      '/only in C',
      '--exclude-path',
      '/only in K',
      a,
      b,
    );
    expect(excluded).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('an error is one line and exit code 2', slow, async () => {
    const good = join(folder, 'mix_1r.h5');
    for (const [args, line] of [
      [[good, 'missing.h5'], /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [['missing.h5', good], /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [[good], /^h5log: OPTION: B is missing: another file; see h5log diff --help\n$/],
      [[good, good, '/nothing'], /^h5log: NOT_FOUND: there is no \/nothing in .*\n$/],
      [['-d', '1', '-p', '1', good, good], /^h5log: OPTION: either a delta or a relative .*\n$/],
      [[good, cutFile()], /^h5log: FORMAT: .*\n$/],
      [[good, classicFile()], /^h5log: UNSUPPORTED: .* is NetCDF classic, not HDF5\n$/],
    ] as const) {
      const { code, stdout, stderr } = await h5log('diff', ...args);
      expect(stderr).toMatch(line);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    }
    // What was found before the damage is printed.
    const damaged = await damagedTable();
    const { code, stderr } = await h5log('diff', damaged, damaged);
    expect(stderr).toMatch(/^h5log: FORMAT: .*\n$/);
    expect(code).toBe(2);
  });

  test('ends quietly when nobody reads on', slow, async () => {
    const made = (value: number) =>
      logFile((file) =>
        file.createDataset('/d', { dtype: 'int32', shape: [3_000_000] }).write(new Int32Array(3_000_000).fill(value)),
      );
    const { code, stdout, stderr } = await intoHead(5, 'diff', '-r', await made(1), await made(2));
    expect(stdout.split('\n')).toHaveLength(6);
    expect(stderr).toBe('');
    expect([0, 1]).toContain(code);
  });
});

withOracle('python', 'h5log diff on a terminal', () => {
  test('prints what it prints into a pipe', slow, async () => {
    const [a, b] = [join(folder, 'mix_1r.h5'), join(folder, 'mix_2r.h5')];
    const [terminal, pipe] = [await onTerminal(['diff', '-v', a, b]), await h5log('diff', '-v', a, b)];
    expect(terminal.stdout.replaceAll('\r', '')).toBe(pipe.stdout);
    expect(terminal.code).toBe(1);
  });
});
