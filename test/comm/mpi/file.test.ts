import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openMpiFile } from '../../../src/comm/mpi/file.ts';
import { solo } from '../../../src/comm/solo.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { runMpi, withEachMpi } from './job.ts';

const program = new URL('./programs/file.ts', import.meta.url);
vi.setConfig({ testTimeout: 120_000 });

withEachMpi('a file through MPI-IO', (mpi) => {
  const write = (ranks: number, path: string) => runMpi({ mpi, ranks, program, args: [path], timeout: 90_000 });
  const told = (stdout: string) => stdout.trim().split(/\r?\n/).sort();

  // A colon has a meaning for ROMIO.
  test.each([
    [1, 'plain'],
    [3, 'with:colon'],
  ])('has what %i ranks wrote between one another', async (ranks, name) => {
    const path = join(temporaryDirectory(), name);
    writeFileSync(path, '');
    const { code, stdout } = await write(ranks, path);
    expect(told(stdout)).toEqual(Array.from({ length: ranks }, (_, rank) => `rank ${rank} ok`));
    expect(code).toBe(0);
    expect(Buffer.compare(readFileSync(path), expected(ranks))).toBe(0);
  });

  test('gives every rank the same error where the file is missing', async () => {
    const path = join(temporaryDirectory(), 'none', 'file');
    const { code, stdout } = await write(3, path);
    const text = `NOT_FOUND 0 rank 0: ${path}: cannot be opened: ENOENT: no such file or directory, open '${path}'`;
    expect(told(stdout)).toEqual([`rank 0: ${text}`, `rank 1: ${text}`, `rank 2: ${text}`]);
    expect(code).toBe(0);
  });

  test('gives every rank the same error where it is a directory', async () => {
    const path = temporaryDirectory();
    const { stdout } = await write(2, path);
    expect(told(stdout).map((line) => line.replace(/^rank \d: /, ''))).toEqual(
      Array.from({ length: 2 }, () => expect.stringMatching(/^STORAGE 0 .*EISDIR/)),
    );
  });

  test('gives every rank the same error where the disk is full', async () => {
    const { code, stdout } = await write(3, '/dev/full');
    const lines = told(stdout).filter((line) => line.startsWith('rank '));
    expect(lines).toHaveLength(3);
    const [first = ''] = lines.map((line) => line.replace(/^rank \d: /, ''));
    expect(first).toMatch(/^STORAGE 0 rank 0: \/dev\/full: /);
    for (const [rank, line] of lines.entries()) expect(line).toBe(`rank ${rank}: ${first}`);
    expect(code).toBe(0);
  });
});

test('MPI-IO needs an MPI communicator', () => {
  const wanted = expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringContaining('of kind solo') });
  expect(() => openMpiFile(solo(), 'file')).toThrow(wanted);
});

/** What programs/file.ts writes. */
function expected(ranks: number): Buffer {
  const area = 1_502_100;
  const all = Buffer.alloc(3 * ranks * area);
  for (let round = 0; round < 3; round++) {
    for (let rank = 0; rank < ranks; rank++) {
      if (round === 1 && rank === 0) continue;
      const start = (round * ranks + rank) * area;
      all.fill(1 + rank + 16 * round, start, start + 2100);
      all.fill(101 + rank, start + 2100, start + area);
    }
  }
  return all;
}
