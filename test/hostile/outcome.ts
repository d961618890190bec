import { File } from '../../src/api/file.ts';
import { isH5LogError } from '../../src/base/errors.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { dump } from '../../src/tools/dump/dump.ts';
import { stat } from '../../src/tools/stat/stat.ts';
import { verify } from '../../src/tools/verify/verify.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { full } from '../seed.ts';
import { allocations, resetAllocations, watchAllocations } from './allocations.ts';
import { Walk } from './walk.ts';
import { watchCase } from './watchdog.ts';

watchAllocations();

/** A page is the least that is read; a commit makes the file grow ahead. */
const PAGE = 64 * 1024;
const GROWTH = 4 * 2 ** 20;
const MOST_MS = 1000;

/** For a test of many cases: eight bits of a byte take eight times as long as one. */
export const PATIENCE = { timeout: full ? 3_600_000 : 180_000 };

/** `read` looks at the structure, `data` also reads every dataset; `later` does so without blocking. */
export type Use = 'read' | 'data' | 'append' | 'later' | 'tools';
export type Ending = 'opened' | 'FORMAT' | 'UNSUPPORTED' | 'LOCKED';

/** How a case went: what was thrown, and how many bytes the results have that were asked for. */
interface Outcome {
  readonly errors: readonly unknown[];
  readonly asked: { readonly largest: number; readonly total: number };
}

const NOTHING_ASKED = { largest: 0, total: 0 };

/** Opens a file for reading. */
type Open = (bytes: Uint8Array) => File;

const inMemory: Open = (bytes) => File.openSync(memoryStorage(bytes));

/** Opens a damaged file and looks at everything in it; or opens it for writing and commits a small change. */
function outcomeOf(bytes: Uint8Array, use: Use, open: Open): Outcome {
  try {
    if (use === 'read') return new Walk().of(open(bytes));
    if (use === 'data') {
      const file = open(bytes);
      const walk = new Walk().of(file).data();
      file.closeSync();
      return walk;
    }
    const storage = memoryStorage(bytes);
    const file = File.openSync(storage, { mode: 'r+' });
    file.attributes.set('h5log', 1);
    file.closeSync();
    checkCommitted(storage.bytes());
    return { errors: [], asked: NOTHING_ASKED };
  } catch (error) {
    return { errors: [error], asked: NOTHING_ASKED };
  }
}

/** The same for uses that do not block: reading, and the tools that only look. */
async function laterOutcomeOf(bytes: Uint8Array, use: Use): Promise<Outcome> {
  const errors: unknown[] = [];
  const storage = (): ReturnType<typeof memoryStorage> => memoryStorage(bytes);
  try {
    if (use === 'later') return await new Walk().of(await File.open(storage())).dataLater();
  } catch (error) {
    errors.push(error);
  }
  if (use === 'tools') {
    for (const tool of [verify, stat, dump]) await tool(storage()).catch((error: unknown) => errors.push(error));
  }
  return { errors, asked: NOTHING_ASKED };
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
function problemOf(error: unknown, use: Use, open: Open): string | undefined {
  if (!isH5LogError(error))
    return `raw error: ${error instanceof Error ? `${error.stack} ${(error.cause as Error)?.stack}` : String(error)}`;
  if (error.code === 'FORMAT')
    return typeof error.offset === 'number' ? undefined : `FORMAT without an offset: ${error.stack}`;
  if (error.code === 'UNSUPPORTED' || (use === 'append' && error.code === 'LOCKED')) return undefined;
  // By a path, data in other files is looked for under names that were damaged.
  if (error.code === 'STORAGE' && open !== inMemory) return undefined;
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
  readonly #extra: number;

  /** `extra`: bytes that a case may take beyond what the size of its file allows. */
  constructor(extra = 0) {
    this.#extra = extra;
  }

  run(file: string, what: string, bytes: Uint8Array, use: Use = 'read', open = inMemory): Ending {
    const from = this.#begin(file, what, bytes, use);
    return this.#end(`${file}, ${what}, ${use}`, from, outcomeOf(bytes, use, open), use, open);
  }

  /** The same for `later` and `tools`, which do not block. */
  async runLater(file: string, what: string, bytes: Uint8Array, use: Use): Promise<Ending> {
    const from = this.#begin(file, what, bytes, use);
    return this.#end(`${file}, ${what}, ${use}`, from, await laterOutcomeOf(bytes, use), use);
  }

  #begin(file: string, what: string, bytes: Uint8Array, use: Use): number {
    this.#files.add(file);
    this.#cases++;
    this.#bytes = bytes;
    watchCase(`${file}, ${what}, ${use}`, bytes);
    resetAllocations();
    return performance.now();
  }

  #end(name: string, from: number, { errors, asked }: Outcome, use: Use, open = inMemory): Ending {
    const ms = performance.now() - from;
    const { largest, total } = allocations;
    this.#slowest = Math.max(this.#slowest, ms);
    if (use !== 'append') this.#largest = Math.max(this.#largest, largest);
    for (const error of errors) {
      const problem = problemOf(error, use, open);
      if (problem) this.#note(name, problem, problem);
    }
    if (ms > MOST_MS && use !== 'later' && use !== 'tools') {
      // Again, by the time of the processor: what others do meanwhile does not count. To measure every case so takes longer than most cases.
      const before = process.cpuUsage();
      outcomeOf(this.#bytes, use, open);
      const { user, system } = process.cpuUsage(before);
      if (user + system > 1000 * MOST_MS) this.#note(name, `took ${(user + system) / 1000} ms`);
    }
    const multiple = use === 'read' ? 4 : 16;
    const most = this.#extra + (use === 'append' ? GROWTH : Math.max(PAGE, multiple * this.#bytes.length));
    if (largest > most + 2 * asked.largest) this.#note(name, `asked for ${largest} bytes at once`);
    if (total > 16 * most + 8 * asked.total) this.#note(name, `asked for ${total} bytes in all`);
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
