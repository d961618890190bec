import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { File, select } from 'h5log';
import { replay } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { parseCdl } from '../../src/bench/cdl.ts';
import { type Decomposition, decomposition, readMap, runsOf } from '../../src/bench/decomposition.ts';
import { type E3smOptions, type E3smReport, e3sm, generateHeader, generateMap } from '../../src/bench/e3sm.ts';
import { FileReader } from '../../src/bench/e3sm-files.ts';
import { planFiles } from '../../src/bench/e3sm-plan.ts';
import { solo } from '../../src/comm/solo.ts';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { runNode } from '../process.ts';
import { full } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

const slow = { timeout: 180_000 };
const program = new URL('../../src/cli/main.ts', import.meta.url);

/** Every type, fixed and record variables, scalars, parts that nobody writes, sizes of which one is of another mesh. */
const HEADER = `netcdf small {
dimensions:
	time = UNLIMITED ; // (3 currently)
	lev = 4 ;
	ncol = 10 ;
	land = 99 ;
	two = 2 ;
variables:
	double lat(ncol) ;
		lat:units = "degrees_north" ;
	float T(time, lev, ncol) ;
		T:_FillValue = 1.e+20f ;
		T:range = 1.f, 2.f ;
	short Q(time, lev, ncol) ;
	float fixed(lev, ncol) ;
	int64 count(time, ncol) ;
	byte small(time, land) ;
		small:_FillValue = -1b ;
	ubyte flag(land) ;
	string label(two) ;
	char written(time, two) ;
	uint64 big ;
	int date(time) ;
	double time(time) ;
// global attributes:
	:title = "small" ;
}`;

/** Four processes. Of two that fit a column, fixed variables take D1 and record variables D2. Runs cross rows; of the land not all is written. */
const MAP = [
  decomposition('D1', [10], [[[0, 5]], [[5, 5]], [], []]),
  decomposition(
    'D2',
    [10],
    [
      [
        [3, 1],
        [0, 2],
      ],
      [
        [2, 1],
        [9, 1],
      ],
      [[4, 2]],
      [[6, 3]],
    ],
  ),
  decomposition(
    'D3',
    [4, 10],
    [
      [
        [8, 4],
        [0, 3],
      ],
      [
        [3, 5],
        [30, 10],
      ],
      [[12, 9]],
      [[21, 9]],
    ],
  ),
  decomposition('D4', [7], [[[6, 1]], [[1, 2]], [], [[4, 1]]]),
];

const small: E3smOptions = { headers: [HEADER], map: MAP, sizes: { land: 7 }, read: true };

describe('runs of a decomposition', () => {
  const [, d2, d3] = MAP as [Decomposition, Decomposition, Decomposition];
  const shown = (of: Decomposition, rank: number, ranks: number): string => {
    const { offsets, lengths } = runsOf(of, rank, ranks);
    return Array.from(offsets, (offset, i) => `${offset}+${lengths[i]}`).join(' ');
  };

  test('belong to rank floor(p * ranks / processes)', () => {
    expect([0, 1].map((rank) => shown(d2, rank, 2))).toEqual(['0+4 9+1', '4+5']);
    expect([0, 1, 2].map((rank) => shown(d2, rank, 3))).toEqual(['0+4 9+1', '4+2', '6+3']);
    expect([0, 5].map((rank) => shown(d2, rank, 8))).toEqual(['0+2 3+1', '']);
  });

  test('are sorted and joined, and cut where rows end', () => {
    expect(shown(d2, 0, 1)).toBe('0+10');
    expect(shown(d3, 0, 1)).toBe('0+10 10+10 20+10 30+10');
    expect(shown(d3, 0, 4)).toBe('0+3 8+2 10+2');
  });
});

describe('the E3SM workload', () => {
  test.each(full ? [1, 2, 3, 4, 6] : [1, 3])('on %i threads is read back as it was written', slow, async (ranks) => {
    const folder = temporaryDirectory();
    const report = await e3sm([join(folder, 'small.h5')], { ...small, ranks, repeat: 2 });
    expect(report).toMatchObject({ kind: 'threads', ranks, wrong: 0 });
    // Elements of the records, of the fixed variables; twice.
    const elements = 3 * (40 + 40 + 10 + 7 + 2 + 1 + 1) + 10 + 40 + 7 + 2 + 1;
    expect(report.verified).toBe(2 * elements);
    expect(report.times).toHaveLength(2);
    for (const { open, define, post, flush, close, total, read } of report.times) {
      expect(Math.max(open, define, post, flush, close)).toBeLessThanOrEqual(total);
      expect(read).toBeGreaterThan(0);
    }
    const [file] = report.files;
    const runs = (k: number): number =>
      Array.from({ length: ranks }, (_, rank) => runsOf(MAP[k] as Decomposition, rank, ranks).length).reduce(
        (a, b) => a + b,
      );
    expect(file).toMatchObject({ variables: 12, records: 3 });
    expect(file?.requests).toBe(runs(0) + 6 * runs(2) + runs(2) + 3 * runs(1) + 3 * runs(3) + runs(3) + 2 + 9);
    expect(file?.fileBytes).toBe(readFileSync(file?.path as string).length);
    expect(file?.tableBytes).toBeGreaterThan(0);
  });

  test('notices a wrong value, one that is missing, and one where nobody writes', async () => {
    const path = join(temporaryDirectory(), 'small.h5');
    await e3sm([path], { ...small, read: false, ranks: 2 });
    const files = planFiles([parseCdl(HEADER)], MAP, { records: [], sizes: { land: 7 }, double: false });
    const check = () => {
      const checked = { verified: 0, wrong: 0, first: undefined };
      new FileReader(solo(), MAP).read(path, files[0] as (typeof files)[0], checked);
      return checked as { wrong: number; first: { variable: string; record: number; position: number } | undefined };
    };
    expect(check()).toMatchObject({ wrong: 0, first: undefined });
    const change = (variable: string, position: number[], value: number | string): void => {
      const file = File.openSync(path, { mode: 'r+' });
      const dataset = file.dataset(variable);
      const old = dataset.readSync(select.points([position]));
      dataset.write([value] as number[], select.points([position]));
      file.closeSync();
      expect(check()).toMatchObject({ wrong: 1, first: { variable } });
      const again = File.openSync(path, { mode: 'r+' });
      again.dataset(variable).write(old as Float64Array, select.points([position]));
      again.closeSync();
      expect(check().wrong).toBe(0);
    };
    change('T', [2, 3, 9], 5);
    change('T', [0, 0, 0], 1e20);
    change('count', [1, 4], 0);
    change('small', [1, 0], 3);
    change('flag', [3], 1);
    change('label', [1], 'x');
    // Two elements in each other's place.
    const file = File.openSync(path, { mode: 'r+' });
    const q = file.dataset('Q', 'int16');
    const [a, b] = q.readSync(
      select.points([
        [1, 0, 3],
        [1, 0, 4],
      ]),
    );
    q.write(
      Int16Array.of(b as number, a as number),
      select.points([
        [1, 0, 3],
        [1, 0, 4],
      ]),
    );
    file.closeSync();
    expect(check()).toMatchObject({ wrong: 2, first: { variable: 'Q', record: 1, position: 3 } });
  });

  test('keeps attributes, types and fill values', async () => {
    const path = join(temporaryDirectory(), 'small.h5');
    await e3sm([path], { ...small, double: true, records: [2] });
    const file = File.openSync(path);
    const t = file.dataset('T');
    expect([t.dtype, t.shape, t.maxShape, t.fill]).toEqual(['float64', [2, 4, 10], [null, 4, 10], Math.fround(1e20)]);
    expect(t.attributes.get('_FillValue')).toEqual(Float64Array.of(Math.fround(1e20)));
    expect(t.attributes.get('range')).toEqual(Float32Array.of(1, 2));
    expect(file.dataset('lat').attributes.get('units')).toBe('degrees_north');
    expect(file.attributes.get('title')).toBe('small');
    expect(file.dataset('small').fill).toBe(-1);
    expect(file.dataset('date').dtype).toBe('int32');
    file.closeSync();
  });

  test('of what is made up has runs of 1 to 3 levels, whole columns of cells, and gaps in the land', slow, async () => {
    const [, levels, cells, land] = generateMap() as [Decomposition, Decomposition, Decomposition, Decomposition];
    expect(Math.max(...levels.lengths)).toBe(3);
    expect(new Set(cells.lengths)).toEqual(new Set([cells.dims[1]]));
    expect(land.lengths.reduce((a, b) => a + b)).toBeLessThan(land.dims[0] as number);
    expect(runsOf(levels).elements).toBe(72 * 866);
    const tiny = { columns: 50, levels: 5, cells: 20, layers: 6, grid: 100 };
    const options = { headers: [generateHeader(tiny)], map: generateMap(tiny), records: [2], read: true, ranks: 3 };
    const report = await e3sm([join(temporaryDirectory(), 'made-up.h5')], options);
    expect(report.wrong).toBe(0);
    expect(report.verified).toBeGreaterThan(2 * (320 * 50 + 64 * 250 + 30 * 120 + 40 * 100));
  });

  test('refuses sizes of dimensions that no header has, and headers without a file', async () => {
    await expect(e3sm(['a.h5'], { ...small, sizes: { nCells: 5 } })).rejects.toMatchObject({ code: 'OPTION' });
    await expect(e3sm(['a.h5', 'b.h5'], small)).rejects.toMatchObject({ code: 'OPTION' });
    await expect(readMap(fileURLToPath(import.meta.url))).rejects.toThrow();
  });
});

describe('h5log bench', () => {
  test('measures what it makes up', slow, async () => {
    const args = ['bench', 'e3sm', '--generate', '--repeat', '2', '--read', '--ranks', '2'];
    const { code, stdout, stderr } = await runNode(program, args);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^2 threads, 2 repetitions/m);
    expect(stdout).toMatch(
      /^generated.h5: 462 variables, 1 record, [\d,]+ requests, [\d.]+ MiB; tables [\d,]+ bytes, file [\d,]+ bytes$/m,
    );
    expect(stdout).toMatch(/^ +open +define +post +flush +close +total +plain +read$/m);
    expect(stdout).toMatch(/^collectives of a file: open 4, define 0, post 0, flush 3, close 2$/m);
    expect(stdout).toMatch(/^warm( +[\d.]+ s){8}$/m);
    expect(stdout).toMatch(/^verified .*: all right$/m);
    expect(code).toBe(0);
  });

  test.each([
    [
      ['bench', 'e4sm', '--generate'],
      'WORKLOAD is e3sm, small, stream, flushes, open, replay, seal, layouts or all, not e4sm (did you mean e3sm?)',
    ],
    [['bench', 'e3sm'], '--map is missing'],
    [['bench', 'e3sm', '--map', 'x.h5'], '--header is missing'],
    [['bench', 'e3sm', '--header', 'absent.txt', '--generate'], 'absent.txt cannot be read'],
    [['bench', 'e3sm', '--generate', '--records', '1,x'], '--records is a list of whole numbers'],
    [['bench', 'e3sm', '--generate', '--dim', 'ncol'], '--dim is a name and a size'],
  ])('says what is wrong with %j', slow, async (args, message) => {
    const { code, stderr } = await runNode(program, args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});

withEachMpi('h5log bench on MPI', (mpi) => {
  test.runIf(full || mpi === 'openmpi')('on 3 ranks', slow, async () => {
    const args = ['bench', 'e3sm', '--generate', '--repeat', '2', '--read', '--json', '--records', '2'];
    const { code, stdout } = await runMpi({ mpi, ranks: 3, program, args, timeout: 150_000 });
    const report = JSON.parse(stdout) as E3smReport & { warm: object; peakMemory: number };
    expect(report).toMatchObject({ kind: 'mpi', ranks: 3, wrong: 0 });
    expect(report.verified).toBeGreaterThan(2 * 2 * 64 * 72 * 866);
    expect(report.peakMemory).toBeGreaterThan(2 ** 24);
    expect(code).toBe(0);
  });
});

// ---------------------------------------------------------------- the real data, which is not part of the project

const real = fileURLToPath(new URL('../../../shared/e3sm/', import.meta.url));
const hasReal = existsSync(join(real, 'map_f_case_16p.h5'));
if (!hasReal) process.stdout.write('skipped: the F case of E3SM (its headers and map are not in ../shared/e3sm)\n');

function realCase(folder: string): { paths: string[]; options: E3smOptions } {
  const names = ['f_case_h0', 'f_case_h1'];
  const headers = names.map((name) => readFileSync(join(real, `${name}.txt`), 'utf8'));
  const paths = names.map((name) => join(folder, `${name}.h5`));
  return {
    paths,
    options: { headers, map: join(real, 'map_f_case_16p.h5'), double: true, records: [1, 2], read: true },
  };
}

function line(report: E3smReport): string {
  const best = Math.min(...report.times.slice(1).map(({ total }) => total));
  const tables = report.files.map(({ tableBytes }) => tableBytes).join(' and ');
  return `E3SM F on ${report.ranks} threads: best ${best.toFixed(3)} s end to end, tables of ${tables} bytes, ${report.verified} values verified\n`;
}

describe.skipIf(!hasReal)('the F case of E3SM', () => {
  // What the data's description says; table bytes of the original without compression: 317 and 293 KB on 2 ranks.
  test.each(
    full
      ? [
          [1, 5116],
          [2, 1_225_050],
        ]
      : [[2, 1_225_050]],
  )('on %i ranks', slow, async (ranks, requests) => {
    const { paths, options } = realCase(temporaryDirectory());
    const report = await e3sm(paths, { ...options, ranks, repeat: 2, compress: false });
    expect(report.wrong).toBe(0);
    expect(report.files.map(({ variables }) => variables)).toEqual([414, 51]);
    expect(report.files.reduce((sum, file) => sum + file.requests, 0)).toBe(requests);
    const bytes = report.files.reduce((sum, file) => sum + file.bytes, 0);
    expect((bytes / 2 ** 20).toFixed(1)).toBe('33.4');
    if (ranks === 2) {
      const [h0, h1] = report.files.map(({ tableBytes }) => tableBytes) as [number, number];
      expect(h0).toBeLessThanOrEqual(1.03 * 317_000);
      expect(h1).toBeLessThanOrEqual(1.03 * 293_000);
      const packed = await e3sm(paths, { ...options, ranks });
      expect(packed.files[0]?.tableBytes).toBeLessThanOrEqual(317_000 / 4);
      expect(packed.files[1]?.tableBytes).toBeLessThanOrEqual(293_000 / 4);
      expect(packed.wrong).toBe(0);
    }
    process.stdout.write(line(report));
  });

  withOracle('python', 'replayed', () => {
    test('is what h5py reads', slow, async () => {
      const { paths, options } = realCase(temporaryDirectory());
      await e3sm(paths, { ...options, ranks: 2, read: false });
      const output = `${paths[1]}.ordinary.h5`;
      const { seconds } = await replay(paths[1] as string, output);
      const log = File.openSync(paths[1] as string);
      const values = Array.from(log.dataset('U850').readSync() as Float64Array);
      log.closeSync();
      const script = "import h5py, json, sys; print(json.dumps(h5py.File(sys.argv[1])['U850'][:].ravel().tolist()))";
      expect(JSON.parse(pythonSync(script, [output]))).toEqual(values);
      expect(new Set(values).size).toBe(2 * 866);
      process.stdout.write(`E3SM F h1 replayed in ${seconds.toFixed(3)} s\n`);
    });
  });
});
