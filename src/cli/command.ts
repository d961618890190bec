import type { CommandContext } from './context.ts';

/** 0 fine, 1 differs or damaged, 2 usage or cannot run. */
export type ExitCode = 0 | 1 | 2;

/** One option of a command. It makes the parser and the help. */
export interface Option {
  /** A count is a whole number from `least` (or 0) up, a number may be anything finite. */
  readonly type: 'flag' | 'text' | 'count' | 'number';
  readonly short?: string;
  /** What the help calls the value, in capitals. */
  readonly value?: string;
  readonly default?: string | number;
  /** What the help says about the default, where it is not a constant. */
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
  /** The last one may stand for any number of arguments, at least one unless it is optional. */
  readonly many?: true;
}

export interface Example {
  /** After `h5log`, or with it where something comes before. */
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

/** What the options of a table are after parsing. */
export type Values<T extends Options> = { readonly [K in keyof T]: ValueOf<T[K]> };

/** What a command is called with. */
export interface Call<T extends Options = Options> {
  readonly values: Values<T>;
  readonly positionals: readonly string[];
  readonly context: CommandContext;
}

/**
 * A command: the table that parses its arguments and prints its help, and what it does. Its module holds no more than that and imports
 * its tool inside `run`, so that help and mistakes cost nothing.
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

/** Gives `run` the types of its options. */
export function command<const T extends Options>(table: Command<T>): Command<T> {
  return table;
}

/** For every command that prints facts. */
export const json = { type: 'flag', help: 'print the facts as JSON' } as const satisfies Option;
