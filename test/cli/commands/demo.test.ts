import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import type { DemoReport } from '../../../src/tools/demo/demo.ts';
import { startNode } from '../../child.ts';
import { runMpi, withEachMpi } from '../../comm/mpi/job.ts';
import { oracle, pythonSync } from '../../oracles.ts';
import { type Ended, runNode } from '../../process.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const program = new URL('../../../src/cli/main.ts', import.meta.url);
const slow = { timeout: 180_000 };

/** In a folder for temporary files of its own, which has to be empty afterwards. */
async function demo(...args: string[]): Promise<Ended> {
  const folder = temporaryDirectory();
  const ended = await runNode(program, ['demo', ...args], { env: { ...process.env, TMPDIR: folder } });
  // tsx keeps what it has compiled there.
  expect(readdirSync(folder).filter((name) => !name.startsWith('tsx-'))).toEqual([]);
  return ended;
}

describe('h5log demo', () => {
  test.each(full ? [1, 2, 5] : [1, 5])('on %i threads', slow, async (ranks) => {
    const { code, stdout, stderr } = await demo('--ranks', String(ranks), '--size', '37', '--steps', '4', '--json');
    expect(stderr).toBe('');
    const report = JSON.parse(stdout) as DemoReport & { seconds: number };
    expect(report).toMatchObject({ kind: 'threads', ranks, size: 37, steps: 4, subfiles: 0, wrong: 0 });
    expect(report.verified).toBe(4 * 37 * 37);
    // 5 tiles side by side write their 37 rows each, 4 inner edges with 2 more columns each.
    expect(report.requests).toBe(4 * 37 * ranks);
    expect(report.bytes).toBe(8 * 4 * 37 * (37 + 2 * (ranks - 1)));
    expect(report.seconds).toBeGreaterThan(0);
    expect(code).toBe(0);
    process.stdout.write(
      `demo on ${ranks} threads: ${report.verified} elements verified in ${report.seconds.toFixed(2)} s\n`,
    );
  });

  test('prints what it did', slow, async () => {
    const { code, stdout } = await demo('--ranks', '4', '--size', '40', '--steps', '3', '--subfiles', '2');
    expect(stdout).toMatch(/^4 threads, 2 x 2 tiles, field 40 x 40, 3 steps, 2 subfiles$/m);
    expect(stdout).toMatch(/^posted {4}252 requests, 42.3 kB in [\d.]+ s: .* requests\/s, .*B\/s$/m);
    expect(stdout).toMatch(/^flushed {3}3 commits, .*B in [\d.]+ s: .*B\/s$/m);
    expect(stdout).toMatch(/^verified {2}4,800 elements in [\d.]+ s: all right$/m);
    expect(stdout).toMatch(/^total {5}[\d.]+ s$/m);
    // No progress where no terminal is.
    expect(stdout).not.toContain('\r');
    expect(code).toBe(0);
  });

  test('publishes what it keeps, and prints three lines of Python that read it', slow, async () => {
    const path = join(temporaryDirectory(), 'field.h5');
    const { code, stdout } = await demo('--ranks', '2', '--size', '16', '--steps', '3', '--out', path);
    expect(code).toBe(0);
    const [, lines = ''] = stdout.split(/^next {6}in Python:\n/m);
    expect(lines.trim().split('\n')).toHaveLength(3);
    const script = lines.replace(/^ +/gm, '');
    expect(script).toContain(`h5py.File("${path}")`);
    const file = File.openSync(path);
    expect(file.published).toBe(file.sequence);
    const last = await file.dataset('field', 'float64').read({ start: [2, 0, 0], count: [1, 16, 16] });
    file.closeSync();
    if (oracle('python')) expect(pythonSync(script).trim()).toBe(`(3, 16, 16) ${Math.max(...last).toFixed(1)}`);
    const without = await demo('--ranks', '1', '--size', '8', '--steps', '1');
    expect(without.stdout).toMatch(
      /^next {6}h5log demo --out field\.h5 keeps the file; then in Python:\n +import h5py\n/m,
    );
  });

  test('takes ranks that have nothing to write', slow, async () => {
    const { code, stdout } = await demo('--ranks', '5', '--size', '3', '--steps', '2', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ verified: 18, wrong: 0 });
    expect(code).toBe(0);
  });

  test('keeps a file that --check accepts, until an element is changed', slow, async () => {
    const path = join(temporaryDirectory(), 'field.h5');
    const made = await demo('--ranks', '3', '--size', '20', '--steps', '2', '--subfiles', '3', '--out', path);
    expect(made.stdout).toContain(`file      ${path}`);
    expect(existsSync(`${path}.subfiles`)).toBe(true);
    const fine = await demo('--check', path, '--ranks', '2');
    expect(fine.stdout).toMatch(/^verified {2}800 elements in .*: all right$/m);
    expect(fine.code).toBe(0);

    const file = await File.open(path, { mode: 'r+' });
    file.dataset('/field').write([-1], { start: [1, 7, 3], count: [1, 1, 1] });
    await file.close();
    const wrong = await demo('--check', path, '--ranks', '2', '--json');
    expect(JSON.parse(wrong.stdout)).toMatchObject({
      verified: 800,
      wrong: 1,
      firstWrong: { step: 1, row: 7, column: 3, found: -1 },
    });
    expect(wrong.code).toBe(1);
    expect((await demo('--check', path, '--ranks', '1')).stdout).toMatch(
      /1 WRONG\n +the first at step 1, row 7, column 3: -1, not \d+$/m,
    );
  });

  test('takes its temporary file away when it is interrupted', slow, async () => {
    const folder = temporaryDirectory();
    const files = () => readdirSync(folder).filter((name) => name.startsWith('h5log-'));
    const args = ['demo', '--ranks', '1', '--size', '1000', '--steps', '100000'];
    const child = startNode(program, args, { env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' });
    const ended = new Promise((resolve) => child.on('exit', (_code, signal) => resolve(signal)));
    while (files().length === 0 && child.exitCode === null) await sleep(20);
    expect(files()).toHaveLength(1);
    await sleep(500);
    child.kill('SIGINT');
    expect(await ended).toBe('SIGINT');
    expect(files()).toEqual([]);
  });

  test('says in one line why it cannot run', slow, async () => {
    const folder = temporaryDirectory();
    const absent = await demo('--check', join(folder, 'absent.h5'));
    expect(absent).toMatchObject({ code: 2, stdout: '' });
    expect(absent.stderr).toMatch(/^h5log: NOT_FOUND: .*absent\.h5 does not exist\n$/);
    const nowhere = await demo('--ranks', '1', '--out', join(folder, 'nowhere', 'field.h5'));
    expect(nowhere).toMatchObject({ code: 2, stdout: '' });
    expect(nowhere.stderr).toMatch(/^h5log: (STORAGE|NOT_FOUND): .*field\.h5.*\n$/);
    const threads = await demo('--ranks', '1', '--storage', 'mpi-io');
    expect(threads.code).toBe(2);
    expect(threads.stderr).toMatch(/^h5log: OPTION: .*'mpi-io' needs a communicator of MPI.*\n$/);
    const path = join(folder, 'field.h5');
    const file = await File.create(path);
    const locked = await demo('--ranks', '2', '--out', path);
    await file.close();
    expect(locked).toMatchObject({ code: 2, stdout: '' });
    expect(locked.stderr).toMatch(/^h5log: LOCKED: .*\n$/);
    const debug = await demo('--ranks', '1', '--out', join(folder, 'nowhere', 'field.h5'), '--debug');
    expect(debug.stderr).toMatch(/^h5log: .*\n.*H5LogError: [\s\S]*\n\s+at /);
  });
});

withEachMpi('h5log demo on MPI', (mpi) => {
  // npx is such a program.
  test('through another program of Node: with Open MPI it runs, with MPICH it says why it cannot', slow, async () => {
    const through = new URL('../../comm/mpi/programs/through-another.ts', import.meta.url);
    const args = ['demo', '--size', '10', '--steps', '1'];
    const { code, stdout, stderr } = await runMpi({
      mpi,
      ranks: 2,
      program: through,
      inPlace: true,
      args,
      timeout: 150_000,
    });
    if (mpi === 'openmpi') {
      expect(stdout).toMatch(/^verified {2}100 elements in .*: all right\r?$/m);
      expect(code).toBe(0);
    } else {
      expect(stderr).toMatch(/^h5log: COMM: the connection to the launcher \(PMI_FD \d+\) is lost: /m);
      expect(code).toBe(2);
    }
  });

  const run = (ranks: number, ...args: string[]) =>
    runMpi({ mpi, ranks, program, args: ['demo', ...args], timeout: 150_000, env: { TMPDIR: temporaryDirectory() } });

  test('four ranks, one report', slow, async () => {
    const { code, stdout } = await run(4, '--size', '41', '--steps', '3', '--json');
    const report = JSON.parse(stdout) as DemoReport;
    expect(report).toMatchObject({ kind: 'mpi', ranks: 4, grid: [2, 2], verified: 3 * 41 * 41, wrong: 0 });
    expect(code).toBe(0);
  });

  test('subfiles through MPI-IO, a wrong element, a wrong --ranks', slow, async () => {
    const path = join(temporaryDirectory(), 'field.h5');
    const made = await run(3, '--size', '20', '--steps', '2', '--subfiles', '2', '--storage', 'mpi-io', '--out', path);
    expect(made.stdout).toMatch(/^3 ranks of MPI, 1 x 3 tiles, field 20 x 20, 2 steps, 2 subfiles\r?$/m);
    expect(made.code).toBe(0);
    const file = await File.open(path, { mode: 'r+' });
    file.dataset('/field').write([-1], { start: [0, 0, 0], count: [1, 1, 1] });
    await file.close();
    const wrong = await run(2, '--check', path);
    expect(wrong.stdout).toMatch(/^verified {2}800 elements in .*: 1 WRONG\r?$/m);
    expect(wrong.code).toBe(1);
    const odd = await run(2, '--ranks', '3');
    expect(odd.stderr.match(/h5log: OPTION: --ranks 3 is for threads; mpiexec has started 2 ranks/g)).toHaveLength(1);
    expect(odd.code).toBe(2);
  });
});
