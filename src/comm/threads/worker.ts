import { parentPort, workerData } from 'node:worker_threads';
import { H5LogError } from '../../base/errors.ts';
import type { Communicator } from '../communicator.ts';
import { type ErrorRecord, recordError } from '../error.ts';
import { threadsCommunicator } from './communicator.ts';
import { SharedRun, type ThreadsMemory } from './memory.ts';

/** The workerData of a rank. */
export interface RankData {
  readonly memory: ThreadsMemory;
  readonly rank: number;
  readonly timeout: number;
  readonly module: string;
  readonly data: unknown;
  /** Imported before the module. */
  readonly filterModules: readonly string[];
}

/** Messages from a worker to the thread that started it. `ready`: the module is loaded. */
export type RankMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: ErrorRecord };

type RankFunction = (comm: Communicator, data: unknown) => unknown;

/** Runs one rank in its worker. */
async function runRank({ memory, rank, timeout, module, data, filterModules }: RankData): Promise<void> {
  const run = new SharedRun(memory);
  let over = false;
  const fail = (error: unknown) => {
    if (over) return;
    over = true;
    run.fail({ owner: rank, rank, kind: 'error', reason: `rank ${rank} failed: ${describe(error)}` });
    send({ kind: 'error', error: recordError(error, rank) });
  };
  // Exceptions outside the rank's promise and unhandled rejections, unless the module handles them itself.
  process.on('uncaughtExceptionMonitor', (error) => {
    if (process.listenerCount('uncaughtException') === 0) fail(error);
  });
  process.on('exit', (code) => {
    if (over) return;
    const reason = `rank ${rank} ended with exit code ${code} before its function had returned`;
    run.fail({ owner: rank, rank, kind: 'exit', reason });
  });
  try {
    for (const filters of filterModules) await load(filters);
    const main = await loadFunction(module);
    // No rank starts before all are loaded, so that loading does not count against the timeout of collectives.
    const start = new Promise((resolve) => parentPort?.once('message', resolve));
    send({ kind: 'ready' });
    await start;
    const value = await main(threadsCommunicator(run, rank, timeout), data);
    over = true;
    sendResult(value, rank);
    run.setEnded(rank);
  } catch (error) {
    over = false;
    fail(error);
    // Not process.exit: exit hooks must see that this was not a normal end.
    throw error;
  }
  // Timers and sockets that are still open do not keep a rank alive.
  process.exit();
}

async function load(module: string): Promise<{ default?: unknown }> {
  try {
    return (await import(module)) as { default?: unknown };
  } catch (cause) {
    const code = (cause as { code?: unknown } | null)?.code;
    // Exceptions that the module itself throws pass unchanged.
    if (!(cause instanceof SyntaxError) && !(typeof code === 'string' && code.startsWith('ERR_'))) throw cause;
    throw new H5LogError('NOT_FOUND', `cannot load the module ${module}: ${(cause as Error).message}`, { cause });
  }
}

async function loadFunction(module: string): Promise<RankFunction> {
  const loaded = await load(module);
  const main = loaded.default as RankFunction | { default?: unknown } | undefined;
  if (typeof main === 'function') return main;
  // Compiled CommonJS has its default export one level down.
  if (typeof main?.default === 'function') return main.default as RankFunction;
  throw new H5LogError('NOT_FOUND', `the module ${module} has no function as its default export`);
}

function send(message: RankMessage, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

/** Transfers typed arrays, or copies them if they are views of a larger buffer: structured clone would copy the whole buffer. */
function sendResult(result: unknown, rank: number): void {
  let value = result;
  const transfer: ArrayBuffer[] = [];
  if (ArrayBuffer.isView(result) && result.buffer instanceof ArrayBuffer) {
    const { buffer, byteOffset, byteLength } = result;
    if (result instanceof Uint8Array && byteLength < buffer.byteLength) value = new Uint8Array(result);
    else if ('slice' in result && byteLength < buffer.byteLength) value = (result as Float64Array).slice();
    else if (byteOffset === 0 && byteLength === buffer.byteLength) transfer.push(buffer);
  }
  try {
    send({ kind: 'result', value }, transfer);
  } catch (cause) {
    if (transfer.length > 0 && trySend(value)) return;
    throw new H5LogError('COMM', `the result of rank ${rank} cannot be passed on: ${(cause as Error).message}`, {
      rank,
      cause,
    });
  }
}

/** Sends without transferring: WebAssembly memory, for example, cannot be transferred. */
function trySend(value: unknown): boolean {
  try {
    send({ kind: 'result', value });
    return true;
  } catch {
    return false;
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === 'Error' || error.name === 'H5LogError' ? error.message : `${error.name}: ${error.message}`;
}

void runRank(workerData as RankData);
