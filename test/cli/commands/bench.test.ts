import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { netcdf } from 'h5log/netcdf';
import { describe, expect, test } from 'vitest';
import type { Figure } from '../../../src/bench/workload.ts';
import { workloads } from '../../../src/bench/workloads.ts';
import { runMpi, withEachMpi } from '../../comm/mpi/job.ts';
import { type Ended, runNode } from '../../process.ts';
import { temporaryDirectory } from '../../temporary.ts';

const program = new URL('../../../src/cli/main.ts', import.meta.url);
const slow = { timeout: 60_000 };

/** In a folder for temporary files of its own, which has to be empty afterwards. */
async function bench(...args: string[]): Promise<Ended> {
  const folder = temporaryDirectory();
  const ended = await runNode(program, ['bench', ...args], { env: { ...process.env, TMPDIR: folder } });
  expect(readdirSync(folder)).toEqual([]);
  return ended;
}

const tiny = ['--scale', '0.001', '--repeat', '1'];

describe('h5log bench', () => {
  test('measures all workloads, and e3sm with what it makes up', slow, async () => {
    const { code, stdout, stderr } = await bench('all', ...tiny);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^generated.h5: 462 variables/m);
    expect(stdout).toMatch(/^1,000 rows of 1x3 float64, shuffled: from create to close +[\d.]+ s$/m);
    expect(stdout).toMatch(/^ {2}in blocks of 1 MiB: flush\(\), lent buffers +[\d.]+ s +[\d.]+ x the plain rate$/m);
    expect(stdout).toMatch(/^100 flushes of 1 KiB, .* s$/m);
    expect(stdout).toMatch(/^ {2}size of the metadata tables +[\d,]+ bytes$/m);
    expect(stdout).toMatch(
      /^replay of 1 MiB in tiles of 512x256 float64, contiguous +[\d.]+ s +[\d.,]+ MB\/s of data$/m,
    );
    expect(stdout).toMatch(/^ {2}data that was moved for it +0 bytes$/m);
    expect(code).toBe(0);
  });

  test('prints figures for programs, and an external one beside ours', slow, async () => {
    const command =
      'test -z "$(ls "$H5LOG_BENCH_FOLDER")" && touch "$H5LOG_BENCH_FOLDER/file" && echo "$H5LOG_BENCH_SCALE"';
    const args = ['open', 'seal', '--scale', '0.001', '--repeat', '2', '--json', '--external', command];
    const fine = await bench(...args);
    expect(fine.stderr).toBe('');
    const report = JSON.parse(fine.stdout) as { scale: number; repeat: number; figures: Figure[] };
    expect(report).toMatchObject({ scale: 0.001, repeat: 2 });
    const value = (id: string): number => report.figures.find((figure) => figure.id === id)?.value as number;
    expect(value('open/external')).toBe(0.001);
    expect(value('open/external/ratio')).toBeCloseTo(0.001 / value('open/first'), 9);
    expect(value('seal/external/ratio')).toBeCloseTo(0.001 / value('seal/tiles'), 9);
    expect(fine.code).toBe(0);
  });

  test('defines dimensions and coordinates of netCDF for e3sm, and every value is right', slow, async () => {
    const out = temporaryDirectory();
    const args = ['e3sm', '--generate', '--netcdf', '--read', '--ranks', '2', '--repeat', '1', '--out', out, '--json'];
    const ended = await bench(...args);
    expect(ended.stderr).toBe('');
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toMatchObject({ wrong: 0 });
    const [name = ''] = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.h5'));
    const file = File.openSync(join(out, name));
    const { dimensions, variables } = netcdf(file);
    expect([dimensions.get('time')?.unlimited, dimensions.get('time')?.size]).toEqual([true, 1]);
    expect(variables.get('lat')?.dimensions).toEqual(['ncol']);
    expect(variables.size).toBe(462);
    file.closeSync();
  });

  test('compares e3sm with an external program by its warm total', slow, async () => {
    const { code, stdout } = await bench('e3sm', '--generate', '--repeat', '2', '--external', 'echo 2', '--json');
    const report = JSON.parse(stdout) as { warm: { total: number }; figures: Figure[] };
    const value = (id: string): number => report.figures.find((figure) => figure.id === id)?.value as number;
    expect(value('e3sm/total')).toBe(report.warm.total);
    expect(value('e3sm/external/ratio')).toBeCloseTo(2 / report.warm.total, 9);
    expect(code).toBe(0);
  });

  test('keeps files in the directory of --out', slow, async () => {
    const out = join(temporaryDirectory(), 'kept');
    const { code } = await bench('open', ...tiny, '--out', out, '--external', 'echo 1');
    expect(readdirSync(out).sort()).toEqual(['open-external', 'open.h5']);
    expect(code).toBe(0);
  });

  test('names in its help every workload there is', slow, async () => {
    const { stdout } = await runNode(program, ['bench', '--help']);
    expect(stdout).toContain(`WORKLOAD  e3sm, ${workloads.map(({ name }) => name).join(', ')}, all\n`);
    for (const { headline } of workloads) expect(stdout).toContain(headline);
  });

  test.each([
    [
      ['smal'],
      'WORKLOAD is e3sm, small, stream, flushes, open, replay, seal, layouts or all, not smal (did you mean small?)',
    ],
    [
      ['small', 'e4sm'],
      'WORKLOAD is e3sm, small, stream, flushes, open, replay, seal, layouts or all, not e4sm (did you mean e3sm?)',
    ],
    [[], 'WORKLOAD is missing'],
    [['small', '--generate'], '--generate is for the workload e3sm, not for small'],
    [['small', 'open', '--dim', 'ncol=3'], '--dim is for the workload e3sm, not for small, open'],
    [['seal', '--ranks', '2'], '--ranks is for the workload e3sm, not for seal'],
    [['e3sm', '--generate', '--scale', '0.1'], '--scale does not apply to e3sm'],
    [['small', '--scale', '0'], '--scale is a number above 0, not 0'],
    [['small', '--scale', 'big'], '--scale is a number, not "big"'],
    [['open', ...tiny, '--external', 'echo oh >&2; exit 4'], 'ended with exit code 4: oh'],
    [['open', ...tiny, '--external', 'echo nothing'], 'must print its seconds in the last line, not "nothing"'],
  ])('says what is wrong with %j', slow, async (args, message) => {
    const { code, stderr } = await bench(...args);
    expect(stderr).toMatch(/^h5log: OPTION: [^\n]*\n$/);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});

withEachMpi('h5log bench on MPI', (mpi) => {
  test('measures only e3sm on several ranks', slow, async () => {
    const args = ['bench', 'small', '--scale', '0.001'];
    const { code, stderr } = await runMpi({ mpi, ranks: 2, program, args, timeout: 50_000 });
    expect(stderr).toContain('OPTION: small runs in one process, not on 2 ranks');
    expect(code).not.toBe(0);
  });
});
