import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { type Dump, datasetLines, dump, fileKind, replay } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { fullType } from '../../../src/dtype/model.ts';
import { h5log, intoHead, onTerminal, slow } from '../../cli/command.ts';
import { count } from '../../counts.ts';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { expectedOf, folder, hex, littleEndian, readable } from '../../original/fixtures.ts';
import { random, repeats, seed, some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { classicFile, cutFile, damagedTable, fileOfRanks, fixtureCopy, regularFile } from '../samples.ts';

/** What a dump says of a dataset's data: its bytes, put together from the file without the reader. */
function painted(
  found: Dump,
  path: string,
  shape: readonly number[],
  size: number,
): { bytes: Uint8Array; known: Uint8Array } {
  const files = found.stores.map(({ file }) => readFileSync(file));
  const total = shape.reduce((product, n) => product * n, 1);
  const [bytes, known] = [new Uint8Array(total * size), new Uint8Array(total)];
  const entries = found.tables
    .flatMap(({ subfile = 0, sections }) =>
      sections.flatMap((section) => section.entries.map((entry) => ({ ...entry, subfile }))),
    )
    .filter((entry) => entry.path === path)
    .sort((a, b) => a.offset - b.offset);
  for (const { blocks, offset, subfile } of entries) {
    let at = offset;
    for (const { start, count } of blocks) {
      const length = count.reduce((product, n) => product * n, 1);
      for (let i = 0; i < length; i++, at += size) {
        let element = 0;
        for (let d = 0, below = length; d < shape.length; d++) {
          below /= count[d] as number;
          const coordinate = (start[d] as number) + (Math.floor(i / below) % (count[d] as number));
          // The original takes writes outside of the shape.
          if (coordinate >= (shape[d] as number)) element = Number.NaN;
          element = element * (shape[d] as number) + coordinate;
        }
        if (Number.isNaN(element)) continue;
        bytes.set((files[subfile] as Buffer).subarray(at, at + size), element * size);
        known[element] = 1;
      }
    }
  }
  return { bytes, known };
}

describe('dump', () => {
  test.each(some(readable, 'files to dump'))('entries of %s lead to the data that was written', async (name) => {
    const found = await dump(join(folder, name));
    const file = await File.open(join(folder, name));
    for (const [path, { shape, hex: expected }] of Object.entries(expectedOf(name).datasets)) {
      const dataset = file.dataset(path);
      const { size } = fullType(dataset.dtype);
      const { bytes, known } = painted(found, path, shape, size);
      const ours = hex(littleEndian(bytes, dataset.dtype));
      for (let i = 0; i < known.length; i++) {
        const part = [i * size * 2, (i + 1) * size * 2] as const;
        if (known[i]) expect(ours.slice(...part)).toBe(expected.slice(...part));
      }
    }
    await file.close();
    const flags = found.tables.flatMap(({ sections }) => sections.flatMap(({ entries }) => entries));
    expect(flags.every(({ problem }) => problem === undefined)).toBe(true);
  });

  test('every form of entry is named', async () => {
    const seen = new Set<string>();
    for (const name of readable) {
      const { tables } = await dump(join(folder, name));
      for (const { sections } of tables)
        for (const { entries } of sections)
          for (const { flagNames } of entries) seen.add(flagNames.join('+') || 'single');
    }
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'single',
        'multi',
        'record',
        'multi+encoded',
        'reference',
        'multi+record',
        'reference+record',
      ]),
    );
  });

  test('sections are ranks; subfiles have tables of their own', slow, async () => {
    const one = await dump(await fileOfRanks(4));
    expect(one.configuration?.bits).not.toContain('subfiling');
    expect(one.stores.map(({ subfile }) => subfile)).toEqual([undefined]);
    expect(one.tables.some(({ sections }) => sections.length === 4)).toBe(true);
    const several = await dump(await fileOfRanks(4, 2));
    expect(several.configuration).toMatchObject({ subfiles: 2, bits: expect.arrayContaining(['subfiling']) });
    expect(several.stores.map(({ subfile }) => subfile)).toEqual([0, 1]);
    expect(new Set(several.tables.map(({ subfile }) => subfile))).toEqual(new Set([0, 1]));
    const bytes = ({ tables }: Dump): number =>
      tables
        .flatMap(({ sections }) => sections.flatMap(({ entries }) => entries))
        .reduce((sum, entry) => sum + entry.bytes, 0);
    expect(bytes(several)).toBe(bytes(one));
  });

  test('of merge mode that can be read in several ways the rest is shown', async () => {
    const { tables } = await dump(join(folder, 'misread/merge_enc_mix_2r.h5'));
    const entries = tables.flatMap(({ sections }) => sections.flatMap((section) => section.entries));
    expect(entries.some(({ problem }) => /merge mode cannot be decoded/.test(problem ?? ''))).toBe(true);
    expect(entries.every(({ problem, blocks }) => (problem === undefined) === blocks.length > 0)).toBe(true);
  });

  test('knows kinds of files', async () => {
    const path = join(temporaryDirectory(), 'text');
    writeFileSync(path, 'neither\n');
    expect(await fileKind(path)).toBe('unknown');
    writeFileSync(path, '');
    expect(await fileKind(path)).toBe('unknown');
    expect(await fileKind(classicFile())).toBe('NetCDF classic');
    for (const [version, kind] of [
      [2, 'NetCDF 64-bit offset'],
      [5, 'NetCDF 64-bit data'],
    ] as const) {
      writeFileSync(path, Buffer.concat([Buffer.from([0x43, 0x44, 0x46, version]), Buffer.alloc(28)]));
      expect(await fileKind(path)).toBe(kind);
    }
    expect(await fileKind(join(folder, 'mix_1r.h5'))).toBe('HDF5-LogVOL');
  });
});

/** h5dump prints what references lead to, and begins small compounds in the middle of a line. */
const OWN_WAY = new Set(['compound', 'references']);

withOracle(['python', 'h5dump'], 'values beside h5dump', () => {
  test('of every type, as h5dump prints them', slow, async () => {
    const path = regularFile();
    expect(await fileKind(path)).toBe('HDF5');
    const names = [
      'x',
      'grid',
      'fixed',
      'text',
      'compound',
      'flags',
      'colours',
      'vlen',
      'opaque',
      'references',
      'null',
      'scalar',
      'float32',
      'big',
      'int64',
      'array',
      'chunked',
    ];
    const { stdout, code, stderr } = await h5log('dump', ...names.flatMap((name) => ['-d', name]), path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const ours = stdout.split(/^(?=DATASET )/m).slice(1);
    names.forEach((name, i) => {
      const theirs = h5dump('-d', name, path)
        .replace(`HDF5 "${path}" {\nDATASET "${name}"`, `DATASET "/${name}"`)
        .replace(/\}\s*$/, '')
        // The NULs that fill a string up are not part of it.
        .replaceAll('\\000', '');
      const text = (ours[i] as string).replace(i === names.length - 1 ? /\}\s*$/ : /$^/, '');
      if (!OWN_WAY.has(name)) expect(text.trim()).toBe(theirs.trim());
    });
    expect(ours[4]).toContain(
      '   (0): {\n         1,\n         2.5\n      },\n   (1): {\n         3,\n         4\n      }\n   }\n',
    );
    expect(ours[9]).toContain('(0): /x, /grid\n');
  });

  test('parts of datasets in a log, as h5dump prints those of the replayed file', slow, async () => {
    const rng = random(seed('parts of datasets'));
    const whole = (most: number): number => Math.floor(rng() * (most + 1));
    const folderOfTest = temporaryDirectory();
    const [path, replayed] = [join(folderOfTest, 'log.h5'), join(folderOfTest, 'regular.h5')];
    const file = await File.create(path);
    const shapes = [[40], [7, 9], [3, 4, 11]];
    shapes.forEach((shape, i) => {
      const size = shape.reduce((a, b) => a * b, 1);
      file
        .createDataset(`/d${i}`, { dtype: 'int16', shape })
        .write(Int16Array.from({ length: size }, (_, k) => (k * 7919) % 20_011));
    });
    await file.close();
    await replay(path, replayed);
    const parts = repeats(300);
    for (let n = 0; n < parts; n++) {
      const i = n % shapes.length;
      const dimensions = (shapes[i] as number[]).map((size) => {
        const block = 1 + whole(2);
        const stride = block + whole(2);
        const start = whole(size - block);
        return { start, stride, block, count: 1 + whole(Math.floor((size - start - block) / stride)) };
      });
      const text = (key: keyof (typeof dimensions)[0]): string => dimensions.map((part) => part[key]).join(',');
      const slab = Object.fromEntries(
        (['start', 'stride', 'count', 'block'] as const).map((key) => [key, dimensions.map((part) => part[key])]),
      );
      const lines: string[] = [];
      for await (const line of datasetLines(path, { datasets: [`/d${i}`], slab })) lines.push(line);
      const theirs = h5dump(
        '-d',
        `/d${i}`,
        '-s',
        text('start'),
        '-S',
        text('stride'),
        '-c',
        text('count'),
        '-k',
        text('block'),
        replayed,
      );
      const linesOf = (all: string): string[] => all.slice(all.indexOf('DATA {')).match(/\([\d,]+\):[^(}]*/g) ?? [];
      const data = (all: string): number[] =>
        linesOf(all).flatMap((line) => line.replace(/^.*:/, '').match(/\d+/g)?.map(Number) ?? []);
      expect(data(lines.join('\n')).length).toBeGreaterThan(0);
      // h5dump goes through the blocks of several dimensions in an order of its own.
      expect(data(lines.join('\n')).sort()).toEqual(data(theirs).sort());
      // Every value tells where it is: the coordinates in front of a line are those of its first one.
      for (const line of linesOf(lines.join('\n'))) {
        const [at, first] = line.slice(1).split('): ') as [string, string];
        const flat = at.split(',').reduce((sum, c, d) => sum * ((shapes[i] as number[])[d] as number) + Number(c), 0);
        expect(Number.parseInt(first, 10)).toBe((flat * 7919) % 20_011);
      }
    }
    count('dump as h5dump', { 'parts of datasets': parts });
  });

  test('a regular file has no log to take apart', slow, async () => {
    const path = regularFile();
    expect(await h5log('dump', '--log', path)).toEqual({
      code: 0,
      stdout: `${path}: HDF5\nno log in this file\n`,
      stderr: '',
    });
    const { stdout } = await h5log('dump', '--log', '--json', path);
    expect(JSON.parse(stdout)).toEqual({
      file: path,
      kind: 'HDF5',
      sequence: 0,
      configuration: null,
      logs: null,
      stores: [],
      tables: [],
    });
  });

  test('a NetCDF-4 file is recognised by what its library leaves', async () => {
    const path = join(temporaryDirectory(), 'nc4.nc');
    pythonSync("import h5py, sys\nwith h5py.File(sys.argv[1], 'w') as f: f.attrs['_NCProperties'] = 'version=2'", [
      path,
    ]);
    expect(await fileKind(path)).toBe('NetCDF-4');
  });
});

describe('h5log dump', () => {
  const path = join(folder, 'recm_1r.h5');

  test('-H, -k and the entries as text', slow, async () => {
    const header = await h5log('dump', '--log', '-H', path);
    expect(header.stdout.split('\n').slice(1)).toEqual([
      'configuration     0x00a: encode, share',
      'datasets created  2',
      'last commit       0',
      'subfiles          none',
      'log data          1 dataset, 308 bytes',
      'tables            1 dataset, 436 bytes',
      'commit records    none',
      '',
    ]);
    expect(await h5log('dump', '-k', path)).toEqual({ code: 0, stdout: 'HDF5-LogVOL\n', stderr: '' });
    const all = await h5log('dump', '--log', path);
    expect(all.stdout.startsWith(header.stdout)).toBe(true);
    expect(all.stdout).toContain(
      [
        '    entry at 228, 44 bytes: dataset 1 /rc, multi, encoded, reference, record; data at 3076, 44 bytes',
        '      record 1, selection of the entry at 104, 2 blocks',
        '      (1, 0, 1) + (1, 1, 3)',
        '      (1, 2, 2) + (1, 2, 4)',
        '',
      ].join('\n'),
    );
    const big = join(folder, 'big_1r_enc1_zip0.h5');
    const [few, every] = [await h5log('dump', '--log', big), await h5log('dump', '--log', '-v', big)];
    expect(few.stdout).toMatch(/^ {6}\.\.\. and \d+ more$/m);
    expect(every.stdout).not.toContain('more');
    const blocks = (await dump(big)).tables.flatMap(({ sections }) =>
      sections.flatMap(({ entries }) => entries.flatMap((entry) => entry.blocks)),
    );
    expect(every.stdout.match(/^ {6}\(/gm)).toHaveLength(blocks.length);
  });

  test('--json of tables and of values', slow, async () => {
    const tables = await h5log('dump', '--log', '--json', path);
    expect(JSON.parse(tables.stdout)).toEqual(JSON.parse(JSON.stringify(await dump(path))));
    const log = join(temporaryDirectory(), 'values.h5');
    const file = await File.create(log);
    file.createDataset('/n', { dtype: 'int64', shape: [3] }).write([1n, -(2n ** 62n), 3n]);
    file.createDataset('/f', { dtype: 'float32', shape: [2, 2] }).write([0.5, Number.NaN, Infinity, -1]);
    file.createDataset('/none', { dtype: 'int8', shape: [0, 3] });
    await file.close();
    const { stdout } = await h5log('dump', '--json', '-d', '/n', '-d', '/f', '-d', '/none', log);
    const { datasets } = JSON.parse(stdout) as { datasets: { path: string; values: unknown[]; shape: number[] }[] };
    expect(datasets.map((dataset) => dataset.values)).toEqual([
      [1, '-4611686018427387904', 3],
      [0.5, 'NaN', 'Infinity', -1],
      [],
    ]);
    expect(datasets.map(({ shape }) => shape)).toEqual([[3], [2, 2], [0, 3]]);
  });

  test('says in one line what is wrong', slow, async () => {
    for (const [args, line] of [
      [['missing.h5'], /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [['-k', 'missing.h5'], /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [['-d', '/nothing', path], /^h5log: NOT_FOUND: there is no dataset \/nothing\n$/],
      [['-d', '/ra', '-s', '0', path], /^h5log: SELECTION: \/ra has 2 dimensions, start 0 has 1\n$/],
      [
        ['-d', '/ra', '-s', '0,99', path],
        /^h5log: SELECTION: nothing of \/ra is selected: 1 from 99 on in dimension 1, which has 8\n$/,
      ],
      [
        ['-d', '/ra', '-c', '1,9', path],
        /^h5log: SELECTION: the selection reaches 9 in dimension 1 of \/ra, which has 8\n$/,
      ],
      [['-d', '/ra', '-s', 'x', path], /^h5log: OPTION: --start is a list of whole numbers like 0,10, not "x"\n$/],
      [['-s', '0,0', path], /^h5log: OPTION: --start needs a dataset: -d PATH\n$/],
      [[classicFile()], /^h5log: UNSUPPORTED: .* is NetCDF classic, not HDF5\n$/],
      [[cutFile()], /^h5log: FORMAT: .*\n$/],
    ] as const) {
      const { code, stdout, stderr } = await h5log('dump', ...args);
      expect(stderr).toMatch(line);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    }
    const damaged = await h5log('dump', '--log', await damagedTable());
    expect(damaged.stderr).toMatch(/^h5log: FORMAT: .*sections.*\n$/);
    expect(damaged.code).toBe(2);
  });

  test('ends quietly when nobody reads on, also in the middle of a large dataset', slow, async () => {
    const large = join(temporaryDirectory(), 'large.h5');
    const file = await File.create(large);
    file.createDataset('/d', { dtype: 'float64', shape: [50_000, 1000] });
    await file.close();
    const begun = performance.now();
    const { code, stdout, stderr } = await intoHead(8, 'dump', '-d', '/d', large);
    expect(stdout.split('\n')).toHaveLength(9);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // To print all of it takes far longer.
    expect(performance.now() - begun).toBeLessThan(20_000);
  });

  test('prints a file with subfiles, and one in which the subfile is missing gives an error', slow, async () => {
    const copy = fixtureCopy('subfile2_ndims_4r.h5');
    const values = await h5log('dump', '-d', '/d1', copy);
    const bytes = Buffer.from(expectedOf('subfile2_ndims_4r.h5').datasets['/d1']?.hex ?? '', 'hex');
    const expected = Array.from(new Int32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)));
    const printed = values.stdout
      .slice(values.stdout.indexOf('DATA {'))
      .match(/-?\d+(?=,|\n)/g)
      ?.map(Number);
    expect(printed).toEqual(expected);
    rmSync(`${copy}.subfiles/subfile2_ndims_4r.h5.1`);
    const { code, stderr } = await h5log('dump', copy);
    expect(stderr).toMatch(/^h5log: FORMAT: .*subfile.*is missing\n$/);
    expect(code).toBe(2);
  });
});

withOracle('python', 'h5log dump on a terminal', () => {
  test('prints what it prints into a pipe', slow, async () => {
    const path = join(folder, 'recm_1r.h5');
    const [terminal, pipe] = [await onTerminal(['dump', '--log', path]), await h5log('dump', '--log', path)];
    expect(terminal.stdout.replaceAll('\r', '')).toBe(pipe.stdout);
    expect(terminal.code).toBe(0);
  });
});
