import { File } from '../../src/api/file.ts';
import { isH5LogError } from '../../src/base/errors.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { full } from '../seed.ts';
import { allocations, resetAllocations, watchAllocations } from './allocations.ts';
import { Walk } from './walk.ts';

watchAllocations();

/** A page is the least that is read; a commit makes the file grow ahead. */
const PAGE = 64 * 1024;
const GROWTH = 4 * 2 ** 20;
const MOST_MS = 1000;

/** For a test of many cases: eight bits of a byte take eight times as long as one. */
export const PATIENCE = { timeout: full ? 3_600_000 : 180_000 };

export type Use = 'read' | 'append';
export type Ending = 'opened' | 'FORMAT' | 'UNSUPPORTED' | 'LOCKED';

/** Opens a damaged file and looks at everything in it; or opens it for writing and commits a small change. */
function errorsOf(bytes: Uint8Array, use: Use): unknown[] {
  try {
    if (use === 'read') return new Walk().of(File.openSync(memoryStorage(bytes))).errors;
    const storage = memoryStorage(bytes);
    const file = File.openSync(storage, { mode: 'r+' });
    file.attributes.set('h5log', 1);
    file.closeSync();
    checkCommitted(storage.bytes());
    return [];
  } catch (error) {
    return [error];
  }
}

/** A file good enough to be appended to must not be worse afterwards. */
function checkCommitted(bytes: Uint8Array): void {
  let value: unknown;
  try {
    value = File.openSync(memoryStorage(bytes)).attributes.get('h5log');
  } catch (cause) {
    throw new Error('the committed file cannot be read', { cause });
  }
  if (value !== 1) throw new Error(`the committed value reads as ${value}`);
}

/** What is wrong with an error, or nothing. */
function problemOf(error: unknown, use: Use): string | undefined {
  if (!isH5LogError(error))
    return `raw error: ${error instanceof Error ? `${error.stack} ${(error.cause as Error)?.stack}` : String(error)}`;
  if (error.code === 'FORMAT')
    return typeof error.offset === 'number' ? undefined : `FORMAT without an offset: ${error.stack}`;
  if (error.code === 'UNSUPPORTED' || (use === 'append' && error.code === 'LOCKED')) return undefined;
  return `${error.code}: ${error.stack}`;
}

/** Runs cases and keeps the figures. `problems` is empty when every case ended as it may. */
export class Cases {
  readonly problems: string[] = [];
  readonly #counts: Record<Ending, number> = { opened: 0, FORMAT: 0, UNSUPPORTED: 0, LOCKED: 0 };
  readonly #files = new Set<string>();
  readonly #noted = new Set<string>();
  #cases = 0;
  /** The file of the case that was run last. */
  #bytes: Uint8Array = new Uint8Array(0);
  #slowest = 0;
  #largest = 0;

  run(file: string, what: string, bytes: Uint8Array, use: Use = 'read'): Ending {
    this.#files.add(file);
    this.#cases++;
    this.#bytes = bytes;
    resetAllocations();
    // Of the processor: what others do meanwhile does not count.
    const from = process.cpuUsage();
    const errors = errorsOf(bytes, use);
    const { user, system } = process.cpuUsage(from);
    const ms = (user + system) / 1000;
    const { largest, total } = allocations;
    this.#slowest = Math.max(this.#slowest, ms);
    if (use === 'read') this.#largest = Math.max(this.#largest, largest);
    const name = `${file}, ${what}, ${use}`;
    for (const error of errors) {
      const problem = problemOf(error, use);
      if (problem) this.#note(name, problem, problem);
    }
    if (ms > MOST_MS) this.#note(name, `took ${ms.toFixed(0)} ms`);
    const most = use === 'append' ? GROWTH : Math.max(PAGE, 4 * bytes.length);
    if (largest > most) this.#note(name, `asked for ${largest} bytes at once`);
    if (total > 16 * most) this.#note(name, `asked for ${total} bytes in all`);
    const codes = new Set(errors.map((error) => (isH5LogError(error) ? error.code : 'FORMAT')));
    const ending = (['FORMAT', 'UNSUPPORTED', 'LOCKED'] as const).find((code) => codes.has(code)) ?? 'opened';
    this.#counts[ending]++;
    return ending;
  }

  /** Notes a case that ended in an allowed way, but not in the one that it must. */
  expect(ending: Ending, wanted: Ending, name: string): void {
    if (ending !== wanted) this.#note(name, `${ending}, expected ${wanted}`);
  }

  /** Notes what is wrong with the case that was run last; one of each kind is enough. */
  #note(name: string, problem: string, kind = `${name}: ${problem}`): void {
    const same = kind.replace(/\d+/g, '#');
    if (this.#noted.has(same) || this.problems.length >= 20) return;
    this.#noted.add(same);
    this.problems.push(`${name}: ${problem}`);
    keepInput(`${name}.h5`, this.#bytes);
  }

  /** Prints the line of figures and returns the problems. */
  report(title: string): string[] {
    const { opened, FORMAT, UNSUPPORTED, LOCKED } = this.#counts;
    const endings = `${opened} opened, ${FORMAT} FORMAT, ${UNSUPPORTED} UNSUPPORTED${LOCKED ? `, ${LOCKED} LOCKED` : ''}`;
    const most = `slowest ${this.#slowest.toFixed(1)} ms, largest allocation ${this.#largest} bytes`;
    process.stdout.write(`hostile, ${title}: ${this.#files.size} files, ${this.#cases} cases: ${endings}; ${most}\n`);
    count(`hostile, ${title}`, { cases: this.#cases, opened, FORMAT, UNSUPPORTED, ...(LOCKED ? { LOCKED } : {}) });
    return this.problems;
  }
}
