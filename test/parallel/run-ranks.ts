import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll } from 'vitest';
import type { runThreads } from '../../src/comm/threads/run.ts';

// The one that tsx compiles with: it is there wherever the tests run.
const esbuild = createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild') as {
  buildSync(options: Record<string, unknown>): unknown;
};

const built = new Map<string, string>();

afterAll(() => {
  for (const folder of built.values()) rmSync(folder, { recursive: true, force: true });
});

/**
 * Runs a TypeScript module on ranks that are threads, as runThreads does, but compiled once together with the package and not by
 * every thread for itself, which takes seconds.
 *
 * @example const results = await runRanks<number>(4, new URL('./some-rank.ts', import.meta.url), { path });
 */
export async function runRanks<R>(ranks: number, module: URL, data: unknown, timeout = 20_000): Promise<R[]> {
  const folder = built.get(module.href) ?? compile(module);
  const { runThreads: run } = (await import(pathToFileURL(join(folder, 'threads.js')).href)) as {
    runThreads: typeof runThreads;
  };
  return run<R>(ranks, pathToFileURL(join(folder, 'rank.js')), data, { timeout });
}

/** The same in a process of its own, which can be killed. */
export function startRanks(ranks: number, module: URL, data: unknown): ChildProcess {
  const folder = built.get(module.href) ?? compile(module);
  const [threads, rank] = ['threads.js', 'rank.js'].map((name) => pathToFileURL(join(folder, name)).href);
  const text = `import { runThreads } from '${threads}'; await runThreads(${ranks}, '${rank}', ${JSON.stringify(data)});`;
  return spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] });
}

function compile(module: URL): string {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-ranks-'));
  const source = (path: string): string => new URL(`../../src/${path}`, import.meta.url).pathname;
  esbuild.buildSync({
    entryPoints: {
      threads: source('comm/threads/run.ts'),
      worker: source('comm/threads/worker.ts'),
      rank: module.pathname,
    },
    outdir: folder,
    bundle: true,
    // What the entry points share is in one piece, so that there is one class of errors.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['h5log-source'],
    sourcemap: 'inline',
    logLevel: 'error',
  });
  built.set(module.href, folder);
  return folder;
}
