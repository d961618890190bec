import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { E3smReport } from '../src/bench/e3sm.ts';
import { median } from '../src/bench/workload.ts';
import { runCommand } from './built.ts';
import { report } from './report.ts';

/** Bytes of the tables that the original writes for the F case on 2 ranks, as it was measured. */
const ORIGINAL = [317_000, 293_000];
const REPEAT = 15;
const REPLAYS = 5;

/** What becomes of the files of the F case: how large their tables are, how fast they are read back and replayed. */
export async function reportFiles(folder: string, args: readonly string[]): Promise<void> {
  const own = mkdtempSync(join(folder, 'e3sm-files-'));
  const write = async (more: readonly string[]): Promise<E3smReport> => {
    const { stdout } = await runCommand(['bench', 'e3sm', ...args, '--out', own, '--json', ...more]);
    return JSON.parse(stdout) as E3smReport;
  };
  for (const [what, limit, flags] of [
    ['tables on 2 ranks, without compression', 1.03, ['--no-compress']],
    ['tables on 2 ranks', 0.25, []],
  ] as const) {
    const { files } = await write(['--ranks', '2', '--repeat', '1', ...flags]);
    files.forEach(({ tableBytes }, i) => {
      report(`e3sm: ${what}, file ${i + 1}`, tableBytes, 'bytes');
      report("  against the original's", tableBytes / (ORIGINAL[i] as number), 'x', { limit });
    });
  }
  const { times, files } = await write(['--ranks', '1', '--read', '--repeat', String(REPEAT)]);
  const reads = times.slice(1).map(({ read }) => read as number);
  report('e3sm: both files read back by 1 rank, every value verified, warm', median(reads), 's', { limit: 0.25 });
  report('e3sm: both files replayed, written by 1 rank (best)', await replayed(files, own), 's', { limit: 0.4 });
  const several = await write(['--ranks', '2', '--repeat', '1']);
  report('e3sm: both files replayed, written by 2 ranks (best)', await replayed(several.files, own), 's', {
    limit: 0.4,
  });
  rmSync(own, { recursive: true });
}

/** Each file by a command of its own, which has to compile everything first. */
async function replayed(files: E3smReport['files'], folder: string): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < REPLAYS; round++) {
    let sum = 0;
    for (const { path } of files) {
      const { stdout } = await runCommand(['replay', path, join(folder, 'replayed.h5'), '--force', '--json']);
      sum += (JSON.parse(stdout) as { seconds: number }).seconds;
    }
    best = Math.min(best, sum);
  }
  return best;
}
