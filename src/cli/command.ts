import type { CommandContext } from './context.ts';

/** 0: success; 1: files differ or are damaged; 2: wrong usage or another error. */
export type ExitCode = 0 | 1 | 2;

/** An option of a command. Parser and help are derived from it. */
export interface Option {
  /** A count is a whole number from `least` (or 0) up; a number is any finite number; a size is bytes, such as 64MiB. */
  readonly type: 'flag' | 'text' | 'count' | 'number' | 'size';
  readonly short?: string;
  /** The name of the value in the help, in capitals. */
  readonly value?: string;
  readonly default?: string | number;
  /** The help's description of the default, if the default is not a constant. */
  readonly otherwise?: string;
  readonly choices?: readonly string[];
  readonly least?: number;
  /** May be given several times. */
  readonly many?: true;
  readonly help: string;
}

export interface Positional {
  readonly name: string;
  readonly help: string;
  readonly optional?: true;
  /** The last positional may take any number of arguments, at least one unless it is optional. */
  readonly many?: true;
  /** The words that it may be; else it is a file or the path of an object. */
  readonly choices?: readonly string[];
}

interface Example {
  /** Without `h5log` in front, unless something precedes it. */
  readonly command: string;
  readonly says: string;
}

export type Options = Readonly<Record<string, Option>>;

type Single<O extends Option> = O['type'] extends 'text' ? string : number;
type ValueOf<O extends Option> = O['type'] extends 'flag'
  ? boolean
  : O extends { readonly many: true }
    ? readonly Single<O>[]
    : O extends { readonly default: string | number }
      ? Single<O>
      : Single<O> | undefined;

/** The parsed values of a table of options. */
export type Values<T extends Options> = { readonly [K in keyof T]: ValueOf<T[K]> };

/** The arguments of a command, parsed. */
interface Call<T extends Options = Options> {
  readonly values: Values<T>;
  readonly positionals: readonly string[];
  readonly context: CommandContext;
  /** Loads the tables of all commands. */
  commands(): Promise<readonly Command[]>;
}

/**
 * A command: the table that its parser and its help are derived from, and `run`. Its module imports the tool inside `run`, so that
 * help and usage errors load nothing else.
 */
export interface Command<T extends Options = Options> {
  readonly name: string;
  readonly summary: string;
  /** Paragraphs for the help. */
  readonly details?: readonly string[];
  readonly positionals?: readonly Positional[];
  readonly options: T;
  readonly examples?: readonly Example[];
  run(call: Call<T>): Promise<ExitCode>;
}

/** Infers the types of the options for `run`. */
export function command<const T extends Options>(table: Command<T>): Command<T> {
  return table;
}

/** The option --json of every command that prints results. */
export const json = { type: 'flag', help: 'print the result as JSON' } as const satisfies Option;

/** The option --memory of the commands that need much of it. */
export const memory = {
  type: 'size',
  value: 'SIZE',
  least: 2 ** 20,
  default: 256 * 2 ** 20,
  help: 'memory limit for data and index',
} as const satisfies Option;
