import { spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { type Figures, readCounts } from '../../test/counts.ts';
import { root } from '../root.ts';
import type { Suite } from './suites.ts';

/** A suite that is still busy after this many milliseconds hangs. */
const PATIENCE = 30 * 60_000;
/** Temporary files of a failure that are kept: so many bytes, the newest first. */
const KEPT = 64 * 2 ** 20;

/** How one suite did with one seed. */
export interface Turn {
  readonly suite: string;
  readonly seed: number;
  readonly outcome: 'passed' | 'failed' | 'interrupted';
  readonly seconds: number;
  /** What the suite counted. Of a turn that failed nothing counts. */
  readonly counts: ReadonlyMap<string, Figures>;
  /** The folder with the output and the input of a failure. */
  readonly kept?: string;
}

interface Settings {
  readonly seed: number;
  readonly scale: number;
  /** Where failures are kept. */
  readonly failures: string;
  readonly signal?: AbortSignal;
  readonly patience?: number;
}

/** Runs a suite once, with a seed, in a folder for temporary files of its own. */
export async function runTurn(suite: Suite, settings: Settings): Promise<Turn> {
  const { seed, scale, failures, signal } = settings;
  const work = mkdtempSync(join(tmpdir(), 'h5log-soak-'));
  const [temporary, inputs, output, counts] = ['tmp', 'inputs', 'output.txt', 'counts.jsonl'].map((name) =>
    join(work, name),
  ) as [string, string, string, string];
  mkdirSync(temporary);
  // As /tmp: some tests look at files as a user without rights.
  chmodSync(work, 0o755);
  chmodSync(temporary, 0o1777);
  try {
    const from = performance.now();
    const ending = await runCommand(suite.command, output, settings, {
      H5LOG_SEED: String(seed),
      H5LOG_SCALE: String(scale),
      H5LOG_COUNTS: counts,
      H5LOG_FAILURES: inputs,
      H5LOG_KEEP: '1',
      TMPDIR: temporary,
    });
    const turn = { suite: suite.name, seed, seconds: (performance.now() - from) / 1000, counts: new Map() };
    if (signal?.aborted) return { ...turn, outcome: 'interrupted' };
    if (ending === 'exit code 0') return { ...turn, outcome: 'passed', counts: readCounts(counts) };
    const kept = join(failures, `${suite.name.replaceAll('/', '-')}-${seed}`);
    rmSync(kept, { recursive: true, force: true });
    mkdirSync(kept, { recursive: true });
    const repeat = `H5LOG_SEED=${seed} H5LOG_SCALE=${scale} npx vitest run test/${suite.name}.test.ts`;
    const facts = { suite: suite.name, seed, scale, ending, repeat, time: new Date().toISOString() };
    writeFileSync(join(kept, 'failure.json'), `${JSON.stringify(facts, null, 2)}\n`);
    cpSync(output, join(kept, 'output.txt'));
    if (existsSync(inputs)) cpSync(inputs, join(kept, 'inputs'), { recursive: true });
    keepNewest(temporary, join(kept, 'temporary'));
    return { ...turn, outcome: 'failed', kept };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs a command in a process group of its own and tells how it ended. */
function runCommand(
  [program, ...args]: readonly string[],
  output: string,
  { signal, patience = PATIENCE }: Settings,
  variables: Readonly<Record<string, string>>,
): Promise<string> {
  const file = openSync(output, 'w');
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', ...variables };
  delete env.FORCE_COLOR;
  delete env.H5LOG_FULL;
  const child = spawn(program as string, args, { cwd: root, env, detached: true, stdio: ['ignore', file, file] });
  closeSync(file);
  return new Promise((resolve, reject) => {
    let hung = false;
    // The whole group: tests start processes that would outlive their runner.
    const kill = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    };
    const timer = setTimeout(() => {
      hung = true;
      kill();
    }, patience);
    signal?.addEventListener('abort', kill);
    const settled = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
    };
    child.on('error', (error) => {
      settled();
      reject(error);
    });
    child.on('close', (code, by) => {
      settled();
      resolve(hung ? `killed after ${patience / 1000} s` : by === null ? `exit code ${code}` : `signal ${by}`);
    });
  });
}

/** Copies the newest files of a folder, as far as they are together no larger than the limit. */
function keepNewest(from: string, to: string): void {
  const files = readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { size, mtimeMs } = statSync(path);
      return { path, size, mtimeMs };
    })
    .sort((a, b) => b.mtimeMs - a.mtimeMs);
  let left = KEPT;
  for (const { path, size } of files) {
    if (size > left) continue;
    left -= size;
    cpSync(path, join(to, relative(from, path)));
  }
}
