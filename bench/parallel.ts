import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runThreads } from 'h5log/threads';
import { LAUNCHERS, type Launcher, lastLine, runMpi } from './mpi.ts';
import type { ParallelTask, ParallelTimes } from './parallel-rank.ts';
import { report } from './report.ts';

const RANKS = 2;

/** Several ranks: threads, and MPI where it is installed. */
export async function parallel(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  const task: ParallelTask = { folder, rounds: 5, size: 512 };
  try {
    const [threads] = await runThreads<ParallelTimes>(RANKS, new URL('./parallel-rank.ts', import.meta.url), task);
    print(`${RANKS} threads`, threads as ParallelTimes);
    for (const launcher of Object.keys(LAUNCHERS) as Launcher[]) {
      const times = await onMpi(launcher, task);
      if (times) print(`${RANKS} ranks of ${launcher}`, times);
      else console.log(`${launcher} is not installed: skipped`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function print(who: string, { flush, plain, emptyFlush, barrier, call }: ParallelTimes): void {
  report(`1 GiB by one process in plain writes of 8 MiB (best of ${plain.length})`, Math.min(...plain), 'ms');
  report(`flush of 512 MiB a rank on ${who} (best of ${flush.length})`, Math.min(...flush), 'ms');
  report('  against the plain writes', Math.min(...flush) / Math.min(...plain), 'x', { limit: 1.15 });
  report(`empty flush on ${who}`, emptyFlush, 'ms', { limit: 1 });
  report(`  a collective call that changes an attribute`, call * 1000, 'us');
  report(`  a barrier`, barrier * 1000, 'us');
}

async function onMpi(launcher: Launcher, task: ParallelTask): Promise<ParallelTimes | undefined> {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const program = fileURLToPath(new URL('./parallel-mpi.ts', import.meta.url));
  const node = [process.execPath, '--conditions=h5log-source', '--import', tsx, program, JSON.stringify(task)];
  const outcome = await runMpi(launcher, RANKS, node);
  return typeof outcome === 'string' ? undefined : lastLine<ParallelTimes>(outcome.stdout);
}
