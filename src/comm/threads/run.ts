import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { H5LogError } from '../../base/errors.ts';
import { problemOfTimeout } from '../communicator.ts';
import { restoreError } from '../error.ts';
import { findLauncher } from '../launcher.ts';
import { allocateThreads, SharedRun } from './memory.ts';
import type { RankData, RankMessage } from './worker.ts';

const mostRanks = 1024;
/** After a failure the other ranks may clean up for so long; then their threads are ended, whatever they do. */
const graceMilliseconds = 1000;

/**
 * Runs a module on `ranks` ranks, each in a worker thread of its own. Its default export is called with the communicator of all
 * ranks and with `data`; the promise resolves with what the ranks returned, in rank order, and rejects with the error of the rank
 * that failed first. `timeout` is how many milliseconds a collective waits for the other ranks.
 *
 * @example const sums = await runThreads<number>(4, new URL('./rank.js', import.meta.url), { steps: 10 });
 */
export async function runThreads<R = unknown>(
  ranks: number,
  module: URL | string,
  data?: unknown,
  options: { timeout?: number } = {},
): Promise<R[]> {
  const timeout = options.timeout ?? Number.POSITIVE_INFINITY;
  const problem = problemOfRanks(ranks) ?? problemOfModule(module) ?? problemOfTimeout(timeout);
  if (problem) throw new H5LogError('OPTION', `runThreads: ${problem}`);
  refuseLauncher();
  return new ThreadsRun<R>(ranks, specifierOf(module), data, timeout).results;
}

/** One run, as the thread that started it sees it. */
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

  constructor(ranks: number, module: string, data: unknown, timeout: number) {
    const memory = allocateThreads(ranks);
    this.#run = new SharedRun(memory);
    this.#left = ranks;
    this.results = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const bootstrap = bootstrapOf(module);
    try {
      for (let rank = 0; rank < ranks; rank++) {
        const workerData: RankData = { memory, rank, timeout, module, data };
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
    worker.on('message', (message: RankMessage) => this.#hear(rank, message));
    worker.on('messageerror', (error) => this.#failed(rank, error));
    // Errors come as messages, which say more. A thread whose memory is exhausted cannot send one.
    worker.on('error', (error) => this.#crashes.set(rank, error));
    worker.on('exit', (code) => this.#exited(rank, code));
  }

  #hear(rank: number, message: RankMessage): void {
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
    // All messages have come by now.
    if (this.#crashes.has(rank)) this.#failed(rank, this.#crashes.get(rank));
    if (!this.#over.has(rank) && !this.#errors[rank]) {
      const reason = `rank ${rank} ended with exit code ${code} before its function had returned`;
      this.#run.fail({ owner: -1, rank, kind: 'exit', reason });
    }
    // Its function has returned, but something that listens to the end says that this was a mistake: a file that is still open.
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
    const began = this.#ready === this.#workers.length;
    // Ranks that have not begun have nothing to clean up.
    if (failure?.kind === 'abort' || (!began && this.#errors[failure?.owner ?? -1])) this.#terminate();
    else this.#grace ??= setTimeout(() => this.#terminate(), graceMilliseconds);
  }

  #terminate(): void {
    for (const worker of this.#workers) void worker.terminate();
  }

  #finish(): void {
    clearTimeout(this.#grace);
    const failure = this.#run.failure();
    if (!failure) this.#resolve(this.#values);
    // The error of whoever failed first; those that the others threw because of it say less.
    else this.#reject(this.#errors[failure.owner] ?? new H5LogError('COMM', failure.reason, { rank: failure.rank }));
  }
}

function problemOfRanks(ranks: unknown): string | undefined {
  if (Number.isInteger(ranks) && (ranks as number) >= 1 && (ranks as number) <= mostRanks) return undefined;
  return `the number of ranks is a whole number from 1 to ${mostRanks}, not ${String(ranks)}`;
}

function problemOfModule(module: unknown): string | undefined {
  if (module instanceof URL || (typeof module === 'string' && module !== '')) return undefined;
  return 'the module is a URL, a path or the name of a package';
}

function refuseLauncher(): void {
  const found = findLauncher((name) => process.env[name]);
  // Slurm sets its variables in every batch job; without MPI they do not say that this process is one of several.
  if (!found || found.size === 1 || found.kind === 'srun') return;
  const text =
    `runThreads: this process is rank ${found.rank} of ${found.size} of an MPI launcher, and each of them would start threads of its own. ` +
    'Use the communicator of mpi() from h5log/mpi, or start the program without mpiexec';
  throw new H5LogError('COMM', text, { rank: found.rank });
}

/** What `import` understands: paths become URLs, and so do packages that the working directory knows. */
function specifierOf(module: URL | string): string {
  if (module instanceof URL) return module.href;
  // Two letters at least: C: is a drive.
  if (/^[a-z][a-z\d+.-]+:/i.test(module)) return module;
  if (isAbsolute(module) || /^\.\.?[/\\]/.test(module) || existsSync(module))
    return pathToFileURL(resolve(module)).href;
  try {
    return pathToFileURL(createRequire(resolve('module.js')).resolve(module)).href;
  } catch {
    // A package only for `import` cannot be found this way; the worker tries from where this package is.
    return module;
  }
}

/** The first lines of a worker: a text, so that it can bring in a TypeScript loader before the first .ts file. */
function bootstrapOf(module: string): URL {
  const here = import.meta.url;
  // Built and source files differ in their extension alone.
  const worker = new URL(`./worker${/\.[a-z]+$/.exec(here)?.[0] ?? '.js'}`, here).href;
  const loader = [worker, module].some(isTypeScript) ? typeScriptLoader([here, module]) : undefined;
  const register = loader ? `const { register } = await import(${JSON.stringify(loader)}); register();` : '';
  const text = `${register} await import(${JSON.stringify(worker)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

function isTypeScript(specifier: string): boolean {
  return /\.[cm]?tsx?($|[?#])/.test(specifier);
}

/** That of tsx, if it is installed and Node does not read TypeScript by itself. The flags of tsx alone do not work in workers on Node 20. */
function typeScriptLoader(origins: readonly string[]): string | undefined {
  if ((process.features as { typescript?: unknown }).typescript) return undefined;
  for (const origin of origins) {
    try {
      const path = createRequire(origin).resolve('tsx/esm/api');
      // What require() finds is the CommonJS twin, which cannot register from there.
      return pathToFileURL(path.replace(/\.cjs$/, '.mjs')).href;
    } catch {
      // Not installed there, or the origin is no file.
    }
  }
  return undefined;
}
