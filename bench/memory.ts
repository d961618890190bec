import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { File } from 'h5log';
import { peakMemory } from '../src/bench/workload.ts';
import { report } from './report.ts';

const BLOCKS = 4_000_000;
const MIB = 2 ** 20;

/** Memory of posting many small blocks and flushing them, in a process of its own: what it takes beyond an idle one. */
export function memory(): void {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    // Rows that cover the dataset are joined by the flush, in a copy; every third row does not join, and stays a block.
    for (const [every, what] of [
      [1, 'joined by the flush'],
      [3, 'which do not join'],
    ] as const) {
      const path = join(folder, `memory-${every}.h5`);
      const child = spawnSync(
        process.execPath,
        [...process.execArgv, fileURLToPath(import.meta.url), path, String(every)],
        { encoding: 'utf8' },
      );
      if (child.status !== 0) throw new Error(child.stderr);
      const { idle, posted, flushed, read } = JSON.parse(child.stdout) as Record<string, number>;
      const pending = (BLOCKS * 24) / MIB;
      const allowed = pending + 64 + (BLOCKS * 100) / MIB;
      const beyond = (rss: number | undefined): number => ((rss ?? 0) - (idle ?? 0)) / MIB;
      const posts = `4,000,000 posts of 1x3 float64 (${pending.toFixed(0)} MiB), ${what}`;
      report(`${posts}: memory after posting`, beyond(posted), 'MiB', { limit: allowed });
      report('  peak up to the flush', beyond(flushed), 'MiB', { limit: allowed });
      report('  peak with the index of a read', beyond(read), 'MiB', { limit: allowed });
    }
    land(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Many variables at the same scattered points, on two threads: the whole process, Node included. */
function land(folder: string): void {
  const task = { path: join(folder, 'land.h5'), cells: 100_000, variables: 1000 };
  const text = `import { runThreads } from 'h5log/threads';
    const [first] = await runThreads(2, new URL(${JSON.stringify(new URL('./land-rank.ts', import.meta.url).href)}), ${JSON.stringify(task)});
    console.log(JSON.stringify(first));`;
  const child = spawnSync(process.execPath, [...process.execArgv, '--input-type=module', '-e', text], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('..', import.meta.url)),
  });
  if (child.status !== 0) throw new Error(child.stderr);
  const { pending, peak } = JSON.parse(child.stdout) as { pending: number; peak: number };
  report('1,000 variables at 60,000 scattered points on 2 threads: pending', pending / MIB, 'MiB');
  report('  peak of the process', peak / MIB, 'MiB', { limit: (1.3 * pending) / MIB + 150 });
}

function child(path: string, every: number): void {
  const warm = File.createSync(`${path}.warm`, { publish: 'never' });
  warm.createDataset('x', { dtype: 'float64', shape: [10, 3] }).write(new Float64Array(30));
  warm.closeSync();
  const idle = peakMemory();
  const file = File.createSync(path, { publish: 'never' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [BLOCKS * every, 3] });
  const where = { start: [0, 0], count: [1, 3] };
  const data = new Float64Array(3);
  for (let i = 0; i < BLOCKS; i++) {
    where.start[0] = ((i * 7919) % BLOCKS) * every; // neighbours never follow one another, so that posts stay blocks
    dataset.write(data, where);
  }
  const posted = peakMemory();
  file.flushSync();
  const flushed = peakMemory();
  for (let i = 0; i < 10; i++) dataset.readSync({ start: [i * 1000, 0], count: [10, 3] });
  console.log(JSON.stringify({ idle, posted, flushed, read: peakMemory() }));
  file.closeSync();
}

const [, script, path, every] = process.argv;
if (script === fileURLToPath(import.meta.url) && path) child(path, Number(every));
