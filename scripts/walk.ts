// Which files of src/ a call runs through, by the coverage of V8: how far somebody has to walk who wants to understand it.
// Usage: tsx --conditions=h5log-source scripts/walk.ts [--files] [--check]
//   --files  names them, in the order of their paths, with the number of functions that ran
//   --check  fails if flushSync runs through more than its limit
import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { File } from 'h5log';
import { replay, seal } from 'h5log/tools';
import { root } from './root.ts';

/**
 * Files that `flushSync` of one dataset may run through: 40, and six for agreement, surveys, publishing, dimension scales, headers that
 * are encoded at once, and small blocks that are joined.
 */
const MOST_FILES_OF_FLUSH = 46;

const { values } = parseArgs({ options: { files: { type: 'boolean' }, check: { type: 'boolean' } } });
const sources = pathToFileURL(join(root, 'src')).href;
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const folder = mkdtempSync(join(tmpdir(), 'h5log-walk-'));
try {
  const path = join(folder, 'walk.h5');
  const file = File.createSync(path);
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [10, 10] });
  const ones = new Float64Array(20).fill(1);
  dataset.write(ones, { start: [5, 0], count: [2, 10] });
  await walk('write', () => dataset.write(ones, { start: [2, 0], count: [2, 10] }));
  const ofFlush = await walk('flushSync', () => file.flushSync());
  await walk('readSync', () => dataset.readSync());
  file.closeSync();
  const again = await walk('openSync', () => File.openSync(path));
  again.result.closeSync();
  await walk('replay', () => replay(path, join(folder, 'replayed.h5')));
  await walk('seal', () => seal(path));
  if (values.check && ofFlush.files > MOST_FILES_OF_FLUSH) {
    process.stdout.write(`walk: flushSync runs through ${ofFlush.files} files, more than ${MOST_FILES_OF_FLUSH}\n`);
    process.exitCode = 1;
  }
} finally {
  session.disconnect();
  rmSync(folder, { recursive: true, force: true });
}

/** Prints what ran in src/ during a call. */
async function walk<T>(name: string, call: () => T | Promise<T>): Promise<{ result: T; files: number }> {
  // What ran before counts no more.
  await session.post('Profiler.takePreciseCoverage');
  const result = await call();
  const { result: scripts } = await session.post('Profiler.takePreciseCoverage');
  const counts = new Map<string, number>();
  for (const { url, functions } of scripts) {
    if (!url.startsWith(`${sources}/`)) continue;
    // The loader for TypeScript adds `__name` to every file.
    const ran = functions.filter(
      ({ functionName, ranges }) => functionName !== '__name' && (ranges[0]?.count ?? 0) > 0,
    );
    if (ran.length > 0) counts.set(relative(root, fileURLToPath(url)), ran.length);
  }
  const functions = [...counts.values()].reduce((sum, count) => sum + count, 0);
  process.stdout.write(
    `walk: ${name.padEnd(9)} ${String(functions).padStart(4)} functions in ${String(counts.size).padStart(3)} files\n`,
  );
  if (values.files)
    for (const [path, count] of [...counts].sort()) process.stdout.write(`  ${String(count).padStart(4)}  ${path}\n`);
  return { result, files: counts.size };
}
