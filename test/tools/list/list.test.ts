import { join } from 'node:path';
import { File } from 'h5log';
import { list } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5log, intoHead, onTerminal, slow } from '../../cli/command.ts';
import { runMpi, withEachMpi } from '../../comm/mpi/job.ts';
import { h5ls, pythonSync, withOracle } from '../../oracles.ts';
import { expectedOf, folder, misread, readable, withSubfiles } from '../../original/fixtures.ts';
import { some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { classicFile, cutFile, damagedTable, fileOfRanks, regularFile } from '../samples.ts';

/** Begins what moves cursors and changes colours. */
const ESC = '\u001b';

describe('list', () => {
  test.each(some([...readable, ...misread], 'files to list'))(
    '%s has the datasets, shapes and attributes that were written',
    async (name) => {
      const { kind, objects, subfiles } = await list(join(folder, name), { recursive: true, verbose: true });
      expect(kind).toBe('HDF5-LogVOL');
      expect(subfiles).toBe(withSubfiles.includes(name) ? 2 : 0);
      const { datasets, attributes } = expectedOf(name);
      const listed = objects.filter((object) => object.kind === 'dataset');
      const shapes = listed.map(({ path, shape, maxShape }) => [path, { shape, maxshape: maxShape }]);
      expect(Object.fromEntries(shapes)).toEqual(
        Object.fromEntries(Object.entries(datasets).map(([path, { shape, maxshape }]) => [path, { shape, maxshape }])),
      );
      const found = objects.flatMap(({ path, attributes: all = [] }) =>
        all.map((attribute) => `${path} ${attribute.name}`),
      );
      expect(found.sort()).toEqual(attributes.map(({ object, name: attribute }) => `${object} ${attribute}`).sort());
      expect(listed.every(({ log }) => log !== undefined)).toBe(true);
    },
  );

  test('a file of several ranks lists the same with and without subfiles', slow, async () => {
    const [one, several] = [
      await list(await fileOfRanks(3), { recursive: true }),
      await list(await fileOfRanks(3, 2), { recursive: true }),
    ];
    expect([one.subfiles, several.subfiles]).toEqual([0, 2]);
    expect(several.objects).toEqual(one.objects);
    expect(one.objects.map(({ path, kind }) => [path, kind])).toEqual([
      ['/', 'group'],
      ['/run', 'group'],
      ['/run/field', 'dataset'],
      ['/run/packed', 'dataset'],
      ['/run/_names', 'dataset'],
      ['/run/scattered', 'dataset'],
      ['/total', 'dataset'],
      ['/pairs', 'dataset'],
      ['/latest', 'soft link'],
      ['/late', 'group'],
      ['/late/d', 'dataset'],
    ]);
    expect(one.objects.find(({ path }) => path === '/run/packed')).toMatchObject({
      dtype: 'int32',
      chunks: [16, 16],
      filters: ['shuffle', { deflate: 4 }],
    });
  });

  test('blocks and bytes are those that were written, older versions included', async () => {
    const path = join(temporaryDirectory(), 'fresh.h5');
    const file = await File.create(path, { publish: 'never' });
    const d = file.createDataset('/d', { dtype: 'float32', shape: [10, 10], maxShape: [null, 10] });
    for (let i = 0; i < 3; i++) {
      d.write(new Float32Array(20), { start: [i, 0], count: [2, 10] });
      d.write(new Float32Array(4), { start: [8, i], count: [1, 4] });
      await file.flush();
    }
    await file.close();
    const { objects, sequence } = await list(path);
    expect(sequence).toBe(3);
    expect(objects).toEqual([
      expect.objectContaining({ path: '/d', shape: [10, 10], maxShape: [null, 10], bytes: 3 * (80 + 16) }),
    ]);
    expect(objects[0]?.log).toMatchObject({ id: 0, blocks: 6 });
  });
});

withOracle(['python', 'h5ls'], 'h5log ls beside h5ls', () => {
  test('lists a regular file like h5ls does', slow, async () => {
    const path = regularFile();
    const { code, stdout, stderr } = await h5log('ls', '-r', path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const ours = stdout.trimEnd().split('\n');
    const theirs = h5ls('-r', path).trimEnd().split('\n');
    expect(ours.length).toBe(theirs.length);
    // A line of ours is one of theirs, and then says more.
    theirs.forEach((line, i) => {
      const [name, what] = [line.replace(/\s.*/, ''), line.replace(/^\S+\s+/, '')];
      const [ourName, ourWhat] = [ours[i]?.replace(/\s.*/, ''), ours[i]?.replace(/^\S+\s+/, '')];
      expect(ourName).toBe(name);
      expect(ourWhat?.slice(0, what.length)).toBe(what);
    });
    process.stdout.write(`ls: ${ours.length} lines like those of h5ls\n`);
  });
});

withOracle('python', 'h5log ls of a file with a damaged object', () => {
  test('lists the others, says what is damaged, and ends with 1', slow, async () => {
    const path = join(temporaryDirectory(), 'partly.h5');
    pythonSync(
      `import h5py, sys
with h5py.File(sys.argv[1], 'w') as f:
    for name in ('first', 'second', 'third', 'fourth'): f[name] = [1, 2, 3]
    at = [h5py.h5o.get_info(f[name].id).addr for name in ('second', 'third')]
with open(sys.argv[1], 'r+b') as f:
    f.seek(at[0])
    f.write(b'\\x7f')
    data = open(sys.argv[1], 'rb').read()
    f.seek(data.index(b'\\x10\\x08\\x00\\x00', at[1]))
    f.write(b'\\xff')`,
      [path],
    );
    const { code, stdout, stderr } = await h5log('ls', '-r', path);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^\/first +Dataset \{3\} int64, contiguous, 24 B$/m);
    expect(stdout).toMatch(/^\/fourth +Dataset \{3\} int64, contiguous, 24 B$/m);
    expect(stdout).toMatch(/^\/second +cannot be read: .*$/m);
    expect(stdout).toMatch(/^\/third +cannot be read: .*$/m);
    expect(code).toBe(1);
    const compared = await h5log('diff', path, path);
    expect(compared.stderr).toMatch(/^h5log: FORMAT: .*\n$/);
    expect(compared.code).toBe(2);
  });
});

withEachMpi('h5log ls under a launcher', (mpi) => {
  test('prints once', slow, async () => {
    const program = new URL('../../../src/cli/main.ts', import.meta.url);
    const { stdout, code } = await runMpi({ mpi, ranks: 2, program, args: ['ls', join(folder, 'mix_1r.h5')] });
    expect(stdout.match(/^a +Dataset/gm)).toHaveLength(1);
    expect(code).toBe(0);
  });
});

describe('h5log ls of several files', () => {
  const [one, two] = ['mix_1r.h5', 'recm_1r.h5'].map((name) => join(folder, name)) as [string, string];

  test('prints the name of each before its objects', slow, async () => {
    const [first, second] = [await h5log('ls', one), await h5log('ls', two)];
    const both = await h5log('ls', one, two);
    expect(both).toEqual({ code: 0, stdout: `${one}:\n${first.stdout}\n${two}:\n${second.stdout}`, stderr: '' });
  });

  test('goes on after one that cannot be listed: the exit code is 2', slow, async () => {
    const { code, stdout, stderr } = await h5log('ls', 'missing.h5', two);
    expect(stderr).toBe('h5log: NOT_FOUND: missing.h5 does not exist\n');
    expect(stdout).toBe(`${two}:\n${(await h5log('ls', two)).stdout}`);
    expect(code).toBe(2);
  });

  test('--json gives a list', slow, async () => {
    const { stdout, code } = await h5log('ls', '--json', one, two);
    const plain = async (path: string): Promise<unknown> => JSON.parse(JSON.stringify(await list(path)));
    expect(JSON.parse(stdout)).toEqual([await plain(one), await plain(two)]);
    expect(code).toBe(0);
  });
});

describe('h5log ls', () => {
  test('FILE/object, -v, --json', slow, async () => {
    const path = join(folder, 'groups_2r.h5');
    const inner = await h5log('ls', '-v', `${path}/g1/g2/g3/z`);
    expect(inner.stdout).toBe(
      [
        'z                        Dataset {8} int64, 2 blocks, 64 B',
        '    number     3, in 2 entries of the tables',
        '    published  never: other programs see no data',
        '    attribute  cmp compound {a: int32, b: float64, c: ascii string(4)} {2} = [{"a":4,"b":6,"c":"ex"},{"a":5,"b":7.5,"c":"fx"}]',
        '    attribute  en enum int16 {RED: 0, GREEN: 1, BLUE: 5} {4} = [1,5,0,1]',
        '',
      ].join('\n'),
    );
    const json = await h5log('ls', '-r', '-v', '--json', path);
    expect(JSON.parse(json.stdout)).toEqual(
      JSON.parse(JSON.stringify(await list(path, { recursive: true, verbose: true }))),
    );
    const absent = await h5log('ls', `${path}/g1/nothing`);
    expect(absent).toMatchObject({ code: 2, stdout: '' });
    expect(absent.stderr).toMatch(/^h5log: NOT_FOUND: there is no \/g1\/nothing in .*groups_2r\.h5\n$/);
  });

  test('says in one line what is wrong with a file', slow, async () => {
    for (const [path, line] of [
      ['missing.h5', /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [await damagedTable(), /^h5log: FORMAT: .*\n$/],
      [cutFile(), /^h5log: FORMAT: .*\n$/],
      [classicFile(), /^h5log: UNSUPPORTED: .*classic\.nc is NetCDF classic, not HDF5\n$/],
      [temporaryDirectory(), /^h5log: [A-Z_]+: .*\n$/],
    ] as const) {
      const { code, stdout, stderr } = await h5log('ls', path);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(line);
    }
  });

  test('-v says where logs live and how tables are written', slow, async () => {
    const path = join(temporaryDirectory(), 'logs.h5');
    const file = await File.create(path, { logs: 'dataset', table: { format: 'classic' } });
    file.createDataset('x', { dtype: 'int32', shape: [2] }).write(Int32Array.of(1, 2));
    await file.close();
    const { stdout } = await h5log('ls', '-v', path);
    expect(stdout.split('\n')[0]).toBe('logs: one for each dataset, classic tables, little-endian');
    expect((await h5log('ls', path)).stdout).not.toContain('logs');
  });

  test('names cannot move the cursor of a terminal', slow, async () => {
    const path = join(temporaryDirectory(), 'names.h5');
    const file = await File.create(path);
    file.createGroup(`evil${ESC}[2Jgroup\nnext`);
    file.attributes.set(`a${ESC}]0;title\u0007`, `v${ESC}[1m`);
    await file.close();
    const { stdout } = await h5log('ls', '-r', '-v', path);
    expect(stdout).toContain('/evil\\033[2Jgroup\\nnext ');
    expect(stdout).not.toContain(ESC);
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
  });

  test('ends quietly when nobody reads on', slow, async () => {
    const path = join(temporaryDirectory(), 'wide.h5');
    const file = await File.create(path);
    for (let i = 0; i < 20_000; i++) file.createGroup(`/group-${i}`);
    await file.close();
    const { code, stdout, stderr } = await intoHead(2, 'ls', '-r', path);
    expect(stdout.split('\n')).toHaveLength(3);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

withOracle('python', 'h5log ls on a terminal', () => {
  const path = join(folder, 'groups_2r.h5');

  test('is a coloured tree; not coloured with NO_COLOR; plain in a pipe', slow, async () => {
    const coloured = await onTerminal(['ls', '-r', path]);
    expect(coloured.stdout).toContain(`${ESC}[1;34mg1${ESC}[0m`);
    expect(coloured.stdout).toContain(`${ESC}[32mtop${ESC}[0m`);
    expect(coloured.code).toBe(0);
    const plain = await onTerminal(['ls', '-r', path], { NO_COLOR: '1' });
    expect(plain.stdout.replaceAll('\r', '')).toBe(
      [
        '/                        Group',
        '├─ g1                    Group',
        '│  ├─ g2                 Group',
        '│  │  ├─ g3              Group',
        '│  │  │  └─ z            Dataset {8} int64, 2 blocks, 64 B',
        '│  │  └─ y               Dataset {4, 2} float32, 2 blocks, 32 B',
        '│  └─ x                  Dataset {6} int32, 2 blocks, 24 B',
        '├─ h                     Group',
        '│  └─ x                  Dataset {10} uint8, 2 blocks, 10 B',
        '└─ top                   Dataset {4} float64, 2 blocks, 32 B',
        '',
      ].join('\n'),
    );
    const pattern = new RegExp(`${ESC}\\[[\\d;]*m`, 'g');
    expect(coloured.stdout.replace(pattern, '')).toBe(plain.stdout);
    const piped = await h5log('ls', '-r', path);
    expect(piped.stdout).toMatch(/^\/g1\/g2\/g3\/z +Dataset/m);
    expect(piped.stdout).not.toContain(ESC);
    // A launcher's terminal, which has no size, is as good as a pipe.
    expect((await onTerminal(['ls', '-r', path], {}, 0)).stdout.replaceAll('\r', '')).toBe(piped.stdout);
  });
});
