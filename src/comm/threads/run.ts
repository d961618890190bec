import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import { problemOfTimeout } from '../communicator.ts';
import { restoreError } from '../error.ts';
import { findLauncher } from '../launcher.ts';
import { allocateThreads, SharedRun } from './memory.ts';
import type { RankData, RankMessage } from './worker.ts';

const maxRanks = 1024;
/** After a failure the other ranks have this long to clean up; then their threads are terminated. */
const graceMilliseconds = 1000;

/**
 * Runs a module on `ranks` ranks, each in a worker thread of its own. Its default export is called with the communicator of all
 * ranks and with `data`; the promise resolves with what the ranks returned, in rank order, and rejects with the error of the rank
 * that failed first. `timeout` is how many milliseconds a collective waits for the other ranks. `filterModules` are imported in
 * every thread before the module: registered filters belong to a thread.
 *
 * @example const sums = await runThreads<number>(4, new URL('./rank.js', import.meta.url), { steps: 10 });
 */
export async function runThreads<R = unknown>(
  ranks: number,
  module: URL | string,
  data?: unknown,
  options: { timeout?: number; filterModules?: readonly (string | URL)[] } = {},
): Promise<R[]> {
  checkNames('runThreads', options, { timeout: true, filterModules: true });
  const timeout = options.timeout ?? Number.POSITIVE_INFINITY;
  const filters = options.filterModules ?? [];
  const problem =
    problemOfRanks(ranks) ??
    problemOfModule(module) ??
    problemOfTimeout(timeout) ??
    (Array.isArray(filters) ? filters.map(problemOfModule).find(Boolean) : 'filterModules is a list of modules');
  if (problem) throw new H5LogError('OPTION', `runThreads: ${problem}`);
  refuseLauncher();
  return new ThreadsRun<R>(ranks, specifierOf(module), data, timeout, filters.map(specifierOf)).results;
}

/** One run, on the side of the thread that started it. */
class ThreadsRun<R> {
  readonly results: Promise<R[]>;
  readonly #run: SharedRun;
  readonly #workers: Worker[] = [];
  readonly #values: R[] = [];
  readonly #errors: Error[] = [];
  readonly #crashes = new Map<number, unknown>();
  readonly #over = new Set<number>();
  #ready = 0;
  #left: number;
  #grace: NodeJS.Timeout | undefined;
  #resolve!: (values: R[]) => void;
  #reject!: (error: Error) => void;

  constructor(ranks: number, module: string, data: unknown, timeout: number, filterModules: readonly string[]) {
    const memory = allocateThreads(ranks);
    this.#run = new SharedRun(memory);
    this.#left = ranks;
    this.results = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const bootstrap = bootstrapOf([module, ...filterModules]);
    try {
      for (let rank = 0; rank < ranks; rank++) {
        const workerData: RankData = { memory, rank, timeout, module, data, filterModules };
        this.#watch(rank, new Worker(bootstrap, { workerData }));
      }
    } catch (cause) {
      for (const worker of this.#workers) void worker.terminate();
      const text = `runThreads: a thread cannot be started: ${(cause as Error).message}`;
      throw new H5LogError((cause as Error).name === 'DataCloneError' ? 'OPTION' : 'COMM', text, { cause });
    }
  }

  #watch(rank: number, worker: Worker): void {
    this.#workers.push(worker);
    worker.on('message', (message: RankMessage) => this.#receive(rank, message));
    worker.on('messageerror', (error) => this.#failed(rank, error));
    // Errors arrive as messages, which carry more. A thread that runs out of memory cannot send one.
    worker.on('error', (error) => this.#crashes.set(rank, error));
    worker.on('exit', (code) => this.#exited(rank, code));
  }

  #receive(rank: number, message: RankMessage): void {
    if (message.kind === 'ready') {
      this.#ready++;
      if (this.#ready === this.#workers.length) for (const worker of this.#workers) worker.postMessage('start');
    } else if (message.kind === 'result') {
      this.#values[rank] = message.value as R;
      this.#over.add(rank);
    } else {
      this.#failed(rank, restoreError(message.error));
    }
  }

  #failed(rank: number, error: unknown): void {
    if (this.#errors[rank]) return;
    const known = error instanceof Error ? error : new Error(String(error));
    this.#errors[rank] = 'rank' in known ? known : Object.assign(known, { rank });
    this.#run.fail({ owner: rank, rank, kind: 'error', reason: `rank ${rank} failed: ${known.message}` });
    this.#endOthers();
  }

  #exited(rank: number, code: number): void {
    // All messages have arrived by now.
    if (this.#crashes.has(rank)) this.#failed(rank, this.#crashes.get(rank));
    if (!this.#over.has(rank) && !this.#errors[rank]) {
      const reason = `rank ${rank} ended with exit code ${code} before its function had returned`;
      this.#run.fail({ owner: -1, rank, kind: 'exit', reason });
    }
    // Its function has returned, but an exit hook reports a mistake: a file that is still open.
    if (this.#over.has(rank) && code !== 0) {
      const reason = `rank ${rank} ended with exit code ${code} after its function had returned; so ends a rank that leaves without closing a file`;
      this.#run.fail({ owner: -1, rank, kind: 'exit', reason });
    }
    if (this.#run.failed) this.#endOthers();
    this.#left--;
    if (this.#left === 0) this.#finish();
  }

  #endOthers(): void {
    const failure = this.#run.failure();
    const started = this.#ready === this.#workers.length;
    // Ranks that have not started have nothing to clean up.
    if (failure?.kind === 'abort' || (!started && this.#errors[failure?.owner ?? -1])) this.#terminate();
    else this.#grace ??= setTimeout(() => this.#terminate(), graceMilliseconds);
  }

  #terminate(): void {
    for (const worker of this.#workers) void worker.terminate();
  }

  #finish(): void {
    clearTimeout(this.#grace);
    const failure = this.#run.failure();
    if (!failure) this.#resolve(this.#values);
    // The error of the rank that failed first; those that other ranks threw because of it say less.
    else this.#reject(this.#errors[failure.owner] ?? new H5LogError('COMM', failure.reason, { rank: failure.rank }));
  }
}

function problemOfRanks(ranks: unknown): string | undefined {
  if (Number.isInteger(ranks) && (ranks as number) >= 1 && (ranks as number) <= maxRanks) return undefined;
  return `the number of ranks is a whole number from 1 to ${maxRanks}, not ${String(ranks)}`;
}

function problemOfModule(module: unknown): string | undefined {
  if (module instanceof URL || (typeof module === 'string' && module !== '')) return undefined;
  return 'the module is a URL, a path or the name of a package';
}

function refuseLauncher(): void {
  const found = findLauncher((name) => process.env[name]);
  // Slurm sets its variables in every batch job; without MPI they do not mean that this process is one of several.
  if (!found || found.size === 1 || found.kind === 'srun') return;
  const text =
    `runThreads: this process is rank ${found.rank} of ${found.size} of an MPI launcher, and each of them would start threads of its own. ` +
    'Use the communicator of mpi() from h5log/mpi, or start the program without mpiexec';
  throw new H5LogError('COMM', text, { rank: found.rank });
}

/** A specifier for `import` in another thread, or in another module: paths become URLs, and so do packages that can be resolved from the working directory. */
export function specifierOf(module: URL | string): string {
  if (module instanceof URL) return module.href;
  // A scheme has at least two letters: C: is a drive.
  if (/^[a-z][a-z\d+.-]+:/i.test(module)) return module;
  if (isAbsolute(module) || /^\.\.?[/\\]/.test(module) || existsSync(module))
    return pathToFileURL(resolve(module)).href;
  try {
    return pathToFileURL(createRequire(resolve('module.js')).resolve(module)).href;
  } catch {
    // A package without a `require` entry cannot be resolved this way; the worker resolves it from this package.
    return module;
  }
}

/** The entry module of a worker, as a data: URL: it registers a TypeScript loader, if one is needed, before the first .ts file. */
function bootstrapOf(modules: readonly string[]): URL {
  const here = import.meta.url;
  // The worker is beside this file, with the same extension: .js if built, .ts from source.
  const worker = new URL(`./worker${/\.[a-z]+$/.exec(here)?.[0] ?? '.js'}`, here).href;
  const loader = [worker, ...modules].some(isTypeScript) ? typeScriptLoader([here, ...modules]) : undefined;
  const register = loader ? `const { register } = await import(${JSON.stringify(loader)}); register();` : '';
  const text = `${register} await import(${JSON.stringify(worker)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

function isTypeScript(specifier: string): boolean {
  return /\.[cm]?tsx?($|[?#])/.test(specifier);
}

/** The loader of tsx, if it is installed and Node cannot read TypeScript itself. On Node 20 the flags of tsx alone do not apply to workers. */
function typeScriptLoader(origins: readonly string[]): string | undefined {
  if ((process.features as { typescript?: unknown }).typescript) return undefined;
  for (const origin of origins) {
    try {
      const path = createRequire(origin).resolve('tsx/esm/api');
      // require() finds the CommonJS variant, which cannot register a loader for ES modules.
      return pathToFileURL(path.replace(/\.cjs$/, '.mjs')).href;
    } catch {
      // tsx is not installed there, or the origin is not a file.
    }
  }
  return undefined;
}

/**
 * A module of ranks, by its name without extension: in the folder of the module at `here`, or of the bundle that it became a part
 * of, where all such modules lie.
 */
export function rankModule(name: string, here: string): URL {
  return new URL(`./${name}${/\.[a-z]+$/.exec(here)?.[0] ?? '.js'}`, here);
}
