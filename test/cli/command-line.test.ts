import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { H5LogError } from '../../src/base/errors.ts';
import { nearest } from '../../src/base/options.ts';
import { type Command, command, type ExitCode } from '../../src/cli/command.ts';
import { commands } from '../../src/cli/commands.ts';
import { helpOf, helpOfAll } from '../../src/cli/help.ts';
import { parse } from '../../src/cli/parse.ts';
import { counted, failureLine, progressOn, scaled, several } from '../../src/cli/print.ts';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { type Ended, runNode } from '../process.ts';

const program = new URL('../../src/cli/main.ts', import.meta.url);
const slow = { timeout: 60_000 };
const h5log = (...args: string[]): Promise<Ended> => runNode(program, args);

describe('h5log', () => {
  test('--version', slow, async () => {
    expect(await h5log('--version')).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
  });

  test('--help and help list every command, help COMMAND and COMMAND --help are the same', slow, async () => {
    const all = await h5log('--help');
    for (const name of Object.keys(commands)) expect(all.stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'));
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(await h5log('help')).toEqual(all);
    expect(await h5log()).toEqual(all);
    const one = await h5log('help', 'demo');
    expect(one.stdout).toMatch(/^ +--steps N +.*\(default: 10\)$/m);
    expect(one).toMatchObject({ code: 0, stderr: '' });
    expect(await h5log('demo', '--help', '--steps', '3')).toEqual(one);
  });

  test.each([
    [['dmeo'], /^h5log: OPTION: unknown command dmeo \(did you mean demo\?\); see h5log --help\n$/],
    [['toString'], /^h5log: OPTION: unknown command toString; see h5log --help\n$/],
    [['help', 'dem'], /^h5log: OPTION: unknown command dem \(did you mean demo\?\); see h5log --help\n$/],
    [['--verson'], /^h5log: OPTION: unknown option --verson \(did you mean --version\?\); see h5log --help\n$/],
    [
      ['demo', '--stps=2'],
      /^h5log: OPTION: unknown option --stps \(did you mean --steps\?\); see h5log demo --help\n$/,
    ],
  ])('%j is a mistake in the usage', slow, async (args, line) => {
    const { code, stdout, stderr } = await h5log(...args);
    expect(stderr).toMatch(line);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  test('--debug says where an error comes from', slow, async () => {
    const { stderr } = await h5log('--debug', 'dmeo');
    expect(stderr).toMatch(/^h5log: OPTION: .*\n.*H5LogError: [\s\S]*\n\s+at .*run\.[tj]s/);
  });
});

withEachMpi('h5log under a launcher', (mpi) => {
  test('prints once', slow, async () => {
    const version = await runMpi({ mpi, ranks: 2, program, inPlace: true, args: ['--version'] });
    expect(version.stdout.trim()).toBe(manifest.version);
    expect(version.code).toBe(0);
    const mistake = await runMpi({ mpi, ranks: 2, program, args: ['dmeo'] });
    expect(mistake.stderr.match(/h5log: OPTION: unknown command/g)).toHaveLength(1);
    expect(mistake.code).toBe(2);
  });
});

const sample = command({
  name: 'sample',
  summary: 'is not a command',
  positionals: [
    { name: 'INPUT', help: 'the file' },
    { name: 'MORE', help: 'others', optional: true, many: true },
  ],
  options: {
    all: { type: 'flag', short: 'a', help: 'everything' },
    level: { type: 'count', value: 'N', least: 1, default: 6, help: 'how much' },
    shift: { type: 'number', value: 'X', help: 'by how much' },
    form: { type: 'text', value: 'FORM', choices: ['long', 'short'], help: 'how' },
    path: { type: 'text', short: 'p', value: 'PATH', many: true, help: 'which' },
    room: { type: 'size', value: 'SIZE', least: 1024, default: 2 ** 20, help: 'how much memory' },
  },
  examples: [{ command: 'sample a.h5', says: 'does nothing' }],
  run: async (): Promise<ExitCode> => 0,
}) as Command;

describe('arguments', () => {
  const read = (...args: string[]) => parse(sample, args);

  test('become values, with their defaults', () => {
    expect(read('a.h5')).toEqual({
      values: { all: false, level: 6, shift: undefined, form: undefined, path: [], room: 2 ** 20 },
      positionals: ['a.h5'],
      help: false,
      filterModules: [],
    });
    expect(read('a.h5', '--filter', 'x.mjs', '--filter=y')).toMatchObject({ filterModules: ['x.mjs', 'y'] });
    const { values, positionals } = read(
      '-a',
      '--level',
      '3',
      'a',
      '--shift=-1.5',
      '-p',
      'x',
      '--path',
      'y',
      '--',
      '-b',
    );
    expect(values).toEqual({ all: true, level: 3, shift: -1.5, form: undefined, path: ['x', 'y'], room: 2 ** 20 });
    expect(positionals).toEqual(['a', '-b']);
    expect(read('a', '--shift', '-2').values).toMatchObject({ shift: -2 });
  });

  test.each([
    ['1024', 1024],
    ['67108864', 64 * 2 ** 20],
    ['64M', 64 * 2 ** 20],
    ['64MB', 64 * 2 ** 20],
    ['64MiB', 64 * 2 ** 20],
    ['64 mib', 64 * 2 ** 20],
    ['1.5k', 1536],
    ['2KiB', 2048],
    ['3G', 3 * 2 ** 30],
    ['1T', 2 ** 40],
    ['4096B', 4096],
  ])('a size is written %s', (text, bytes) => {
    expect(read('a', '--room', text).values).toMatchObject({ room: bytes });
  });

  test.each([
    [[], 'INPUT is missing: the file'],
    [['a', '--room', '1023'], '--room is at least 1KiB, not "1023"'],
    [['a', '--room', 'much'], '--room is a size such as 64MiB, 64M or 67108864, not "much"'],
    [['a', '--room', '64XB'], '--room is a size such as 64MiB, 64M or 67108864, not "64XB"'],
    [['a', '--room='], '--room is a size such as 64MiB, 64M or 67108864, not ""'],
    [['a', '--room', '-1'], '--room is a size such as 64MiB, 64M or 67108864, not "-1"'],
    [['a', '--room', '9999999999G'], '--room is a size such as 64MiB, 64M or 67108864, not "9999999999G"'],
    [['a', '--level', '0'], '--level is a whole number from 1 up, not "0"'],
    [['a', '--level', '1.5'], '--level is a whole number from 1 up, not "1.5"'],
    [['a', '--level='], '--level is a whole number from 1 up, not ""'],
    [['a', '--level'], '--level needs a value: --level N'],
    [['a', '--level', '--all'], '--level needs a value: --level N, or --level=--all'],
    [['a', '--level', '1', '--level', '2'], '--level is given twice'],
    [['a', '--shift', 'far'], '--shift is a number, not "far"'],
    [['a', '--all=1'], '--all takes no value'],
    [['a', '--form', 'lon'], '--form is long or short, not lon (did you mean long?)'],
    [['a', '-x'], 'unknown option -x'],
    [['a', '--lvel', '3'], 'unknown option --lvel (did you mean --level?)'],
    [['a', '--constructor'], 'unknown option --constructor'],
  ])('%j is refused', (args, text) => {
    expect(() => read(...args)).toThrow(
      expect.objectContaining({ code: 'OPTION', message: `${text}; see h5log sample --help` }),
    );
  });

  test('beyond the last are refused', () => {
    const alone = { ...sample, positionals: [{ name: 'INPUT', help: 'the file' }] };
    expect(() => parse(alone, ['a', 'b', 'c'])).toThrow('too many arguments: b c; see h5log sample --help');
  });
});

describe('help', () => {
  test('comes from the table', () => {
    expect(helpOf(sample).split('\n')).toEqual([
      'h5log sample: is not a command',
      '',
      'usage: h5log sample [options] INPUT [MORE...]',
      '',
      'arguments:',
      '  INPUT  the file',
      '  MORE   others',
      '',
      'options:',
      '  -a, --all            everything',
      '      --level N        how much (default: 6)',
      '      --shift X        by how much',
      '      --form FORM      how (long, short)',
      '  -p, --path PATH      which (may be repeated)',
      '      --room SIZE      how much memory (default: 1MiB)',
      '  -h, --help           print this help',
      '      --debug          print the stack of an error',
      '      --filter MODULE  import a module that registers filters (may be repeated)',
      '',
      'examples:',
      '  h5log sample a.h5',
      '      does nothing',
    ]);
  });

  test('of every command fits 100 columns, and its table has its name', async () => {
    const tables = await Promise.all(Object.values(commands).map(async (load) => (await load()).default));
    expect(tables.map(({ name }) => name)).toEqual(Object.keys(commands));
    for (const text of [helpOfAll(tables), ...tables.map(helpOf)])
      expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });
});

describe('what is printed', () => {
  test('suggestions are close', () => {
    const names = ['ls', 'dump', 'stat', 'verify', 'demo'];
    expect(['sl', 'dmup', 'verfiy', 'ver', 'stats', 'xyz', 'd'].map((word) => nearest(word, names))).toEqual([
      'ls',
      'dump',
      'verify',
      'verify',
      'stat',
      undefined,
      undefined,
    ]);
  });

  test('an error is one line with its code', () => {
    expect(failureLine(new H5LogError('LOCKED', 'a.h5 is being written'))).toBe('h5log: LOCKED: a.h5 is being written');
    expect(failureLine(Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' }))).toBe(
      'h5log: ENOENT: no such file',
    );
    expect(failureLine(new TypeError('two\n  lines'))).toBe('h5log: TypeError: two lines');
    expect(failureLine('text')).toBe('h5log: text');
  });

  test('figures', () => {
    expect([0, 999, 1000, 1234567].map(counted)).toEqual(['0', '999', '1,000', '1,234,567']);
    expect([several(1, 'step'), several(2, 'step'), several(2, 'entry', 'entries')]).toEqual([
      '1 step',
      '2 steps',
      '2 entries',
    ]);
    expect([5, 999.6, 1234, 12_345_678, 1.5e9].map((value) => scaled(value, 'B/s'))).toEqual([
      '5 B/s',
      '1.00 kB/s',
      '1.23 kB/s',
      '12.3 MB/s',
      '1.50 GB/s',
    ]);
    expect([scaled(500, 'requests/s'), scaled(2e6, 'requests/s')]).toEqual(['500 requests/s', '2.00 M requests/s']);
  });

  test('progress only on a terminal that has columns, within one line, and it goes', () => {
    const screen = (isTTY: boolean, columns: number) => {
      const written: string[] = [];
      const write = (text: string | Uint8Array): boolean => written.push(String(text)) > 0;
      return { written, stream: { isTTY, columns, write } };
    };
    for (const [isTTY, columns] of [
      [false, 80],
      [true, 0],
    ] as const) {
      const { written, stream } = screen(isTTY, columns);
      const progress = progressOn(stream);
      progress.show(1, 'done');
      progress.clear();
      expect(written).toEqual([]);
    }
    const { written, stream } = screen(true, 40);
    const progress = progressOn(stream);
    progress.show(0.5, 'step 1 of 2, with a text that does not fit');
    progress.show(1, 'done');
    progress.clear();
    expect(written).toEqual([
      `\r[${'#'.repeat(15)}${'.'.repeat(15)}] step 1`,
      `\r[${'#'.repeat(30)}] done  `,
      `\r${' '.repeat(37)}\r`,
    ]);
  });
});
