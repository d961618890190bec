import { setImmediate as turn } from 'node:timers/promises';
import type { WriteStream } from 'node:tty';
import { inspect } from 'node:util';
import type { LogsShown } from '../tools/log-tables.ts';

/** A whole number with separators: 1,234,567. */
export function counted(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A count with its unit: 1 block, 2 blocks. */
export function several(value: number, one: string, more = `${one}s`): string {
  return `${counted(value)} ${value === 1 ? one : more}`;
}

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

/** A value with three digits and a prefix: 12.3 MB, 456 kB/s, 7.89 M requests. */
export function scaled(value: number, unit: string): string {
  let [shown, prefix] = [value, 0];
  while (Math.abs(shown) >= 999.5 && prefix < PREFIXES.length - 1) [shown, prefix] = [shown / 1000, prefix + 1];
  const digits = prefix === 0 || shown >= 99.5 ? 0 : shown >= 9.95 ? 1 : 2;
  // A word stands apart from the prefix, a symbol does not.
  const name = /^[a-z]{2}/.test(unit) && prefix > 0 ? ` ${unit}` : unit;
  return `${shown.toFixed(digits)} ${PREFIXES[prefix]}${name}`;
}

export function seconds(value: number): string {
  return `${value.toFixed(value < 0.1 ? 4 : value < 10 ? 2 : 1)} s`;
}

/** Rows of a table with aligned columns: the first `left` of them to the left, the others to the right. */
export function columns(rows: readonly (readonly string[])[], left = 1): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((text, i) => {
      widths[i] = Math.max(widths[i] ?? 0, [...text].length);
    });
  }
  return rows.map((row) =>
    row
      .map((text, i) => {
        const space = ' '.repeat((widths[i] as number) - [...text].length);
        return i < left ? `${text}${space}` : `${space}${text}`;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Characters that are collected before they are printed. */
const BATCH = 2 ** 15;

/**
 * Prints many lines in large batches and returns to the event loop between them: only there the process notices that the reader of
 * a pipe has closed it.
 */
export class LinePrinter {
  readonly #output: { print(text: string): void };
  #lines: string[] = [];
  #length = 0;

  constructor(output: { print(text: string): void }) {
    this.#output = output;
  }

  /** Callers must await the promise, if one is returned. */
  print(line: string): Promise<void> | undefined {
    this.#lines.push(line);
    this.#length += line.length + 1;
    return this.#length < BATCH ? undefined : this.flush();
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('\n');
    this.#lines = [];
    this.#length = 0;
    this.#output.print(text);
    await turn();
  }
}

/** Colours parts of a text, or leaves them plain. */
export interface Palette {
  group(text: string): string;
  dataset(text: string): string;
  link(text: string): string;
  dim(text: string): string;
  warning(text: string): string;
}

const mark =
  (code: string) =>
  (text: string): string =>
    text === '' ? '' : `\u001b[${code}m${text}\u001b[0m`;
const as = (text: string): string => text;

const PLAIN: Palette = { group: as, dataset: as, link: as, dim: as, warning: as };
// Only the sixteen colours of the terminal's own theme, which are legible on its background.
const COLOURED: Palette = {
  group: mark('1;34'),
  dataset: mark('32'),
  link: mark('36'),
  dim: mark('2'),
  warning: mark('31'),
};

export interface Screen {
  readonly isTerminal: boolean;
  readonly palette: Palette;
}

/**
 * Describes standard output. MPI launchers provide terminals of 0 columns, which do not count as terminals. A non-empty NO_COLOR or a
 * dumb terminal switches colours off.
 */
export function screenOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number } = process.stdout,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Screen {
  const isTerminal = stream.isTTY === true && (stream.columns ?? 0) > 0;
  const isColoured = isTerminal && !environment.NO_COLOR && environment.TERM !== 'dumb';
  return { isTerminal, palette: isColoured ? COLOURED : PLAIN };
}

/** Shows the progress of a command. */
export interface Progress {
  /** `part` is the fraction that is done, from 0 to 1. */
  show(part: number, text: string): void;
  /** Removes the progress bar before something else is printed. */
  clear(): void;
}

export const noProgress: Progress = { show: () => {}, clear: () => {} };

const MILLISECONDS = 50;
const BAR = 30;

/** A bar in the last line of a terminal. None in files and pipes, nor in the terminals of 0 columns that MPI launchers provide. */
export function progressOn(stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'>): Progress {
  if (!stream.isTTY || !(stream.columns > 0)) return noProgress;
  let shown = '';
  let last = Number.NEGATIVE_INFINITY;
  return {
    show(part, text) {
      const now = performance.now();
      if (part < 1 && now - last < MILLISECONDS) return;
      last = now;
      const done = Math.round(Math.min(1, Math.max(0, part)) * BAR);
      const line = `[${'#'.repeat(done)}${'.'.repeat(BAR - done)}] ${text}`.slice(0, stream.columns - 1);
      if (line === shown) return;
      stream.write(`\r${line.padEnd(shown.length)}`);
      shown = line;
    },
    clear() {
      if (shown !== '') stream.write(`\r${' '.repeat(shown.length)}\r`);
      shown = '';
    },
  };
}

/** An error as one line with its code: `h5log: LOCKED: run.h5 is being written by ...`. */
export function failureLine(error: unknown): string {
  const { code, message, name } = describe(error);
  // Messages of system errors begin with their code.
  const kind = code ?? (name === 'Error' ? undefined : name);
  const text = message.replace(/\s*\n\s*/g, ' ');
  return kind === undefined || text.startsWith(`${kind}:`) ? `h5log: ${text}` : `h5log: ${kind}: ${text}`;
}

/** The line of an error, and with `debug` its stack. */
export function failureText(error: unknown, debug: boolean): string {
  return debug ? `${failureLine(error)}\n${inspect(error)}\n` : `${failureLine(error)}\n`;
}

function describe(error: unknown): { code?: string; message: string; name: string } {
  if (!(error instanceof Error)) return { message: String(error), name: 'Error' };
  const { code } = error as { code?: unknown };
  return { message: error.message, name: error.name, ...(typeof code === 'string' && { code }) };
}

/** Whether a file has other logs or tables than the original knows. */
export function isNumbered({ scope, format }: LogsShown): boolean {
  return scope !== 'shared' || format !== 'original';
}

export function logsText({ scope, format, bigEndian }: LogsShown): string {
  const tables = format === 'classic' ? `, classic tables, ${bigEndian ? 'big' : 'little'}-endian` : '';
  return `${scope === 'shared' ? 'one for all datasets' : `one for each ${scope}`}${tables}`;
}
