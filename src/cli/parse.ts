import { parseArgs } from 'node:util';
import { H5LogError } from '../base/errors.ts';
import { nearest } from '../base/options.ts';
import type { Command, Option, Options, Positional, Values } from './command.ts';

/** Options of every command. */
export const commonOptions = {
  help: { type: 'flag', short: 'h', help: 'print this help' },
  debug: { type: 'flag', help: 'print the stack of an error' },
  filter: {
    type: 'text',
    value: 'MODULE',
    many: true,
    help: 'import a module that registers filters',
  },
} as const satisfies Options;

interface Parsed {
  readonly values: Values<Options>;
  readonly positionals: readonly string[];
  readonly help: boolean;
  /** Modules that register filters. */
  readonly filterModules: readonly string[];
}

/** Parses the arguments after a command's name. A mistake throws `OPTION` and says what to do. */
export function parse(command: Command, args: readonly string[]): Parsed {
  const table: Options = { ...command.options, ...commonOptions };
  const options = Object.fromEntries(
    Object.entries(table).map(([name, { type, short }]) => [
      name,
      { type: type === 'flag' ? ('boolean' as const) : ('string' as const), multiple: true, ...(short && { short }) },
    ]),
  );
  // Not strict: our own messages name the command and suggest corrections.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true, allowPositionals: true });
  const given = new Map<string, (string | number | true)[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(table, token.name) ? table[token.name] : undefined;
    if (!option) throw mistake(command, `unknown option ${token.rawName}${suggestion(token.name, table)}`);
    const list = given.get(token.name) ?? [];
    list.push(readValue(command, token.rawName, option, token.value, token.inlineValue ?? false));
    if (list.length > 1 && !option.many && option.type !== 'flag')
      throw mistake(command, `${token.rawName} is given twice`);
    given.set(token.name, list);
  }
  const help = given.has('help');
  // With --help the other arguments need not be complete.
  if (!help) checkPositionals(command, positionals);
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(command.options)) {
    const list = given.get(name) ?? [];
    if (option.type === 'flag') values[name] = list.length > 0;
    else values[name] = option.many ? list : (list[0] ?? option.default);
  }
  return {
    values: values as Values<Options>,
    positionals,
    help,
    filterModules: (given.get('filter') ?? []) as string[],
  };
}

function readValue(
  command: Command,
  name: string,
  option: Option,
  text: string | undefined,
  isInline: boolean,
): string | number | true {
  if (option.type === 'flag') {
    if (text !== undefined) throw mistake(command, `${name} takes no value`);
    return true;
  }
  const what = option.value ?? 'VALUE';
  if (text === undefined) throw mistake(command, `${name} needs a value: ${name} ${what}`);
  // Most likely the value was forgotten. A value that begins with a dash can be given with =.
  if (!isInline && /^-./.test(text) && !/^-[\d.]/.test(text))
    throw mistake(command, `${name} needs a value: ${name} ${what}, or ${name}=${text}`);
  if (option.choices && !option.choices.includes(text))
    throw mistake(command, `${name} is ${list(option.choices, 'or')}, not ${text}${near(text, option.choices)}`);
  if (option.type === 'text') return text;
  if (option.type === 'size') return readSize(command, name, text, option.least ?? 0);
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (option.type === 'number') {
    if (Number.isFinite(number)) return number;
    throw mistake(command, `${name} is a number, not ${JSON.stringify(text)}`);
  }
  const least = option.least ?? 0;
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw mistake(command, `${name} is a whole number from ${least} up, not ${JSON.stringify(text)}`);
}

const UNITS = 'kmgt';

/** Bytes: a number with a unit. K, KB and KiB are all 1024, and so on: memory comes in powers of two. */
function readSize(command: Command, name: string, text: string, least: number): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])i?)?b?$/i.exec(text.trim()) ?? [];
  const size = Math.floor(Number(number) * 1024 ** (UNITS.indexOf(unit.toLowerCase() || '-') + 1));
  if (number === '' || !Number.isSafeInteger(size))
    throw mistake(command, `${name} is a size such as 64MiB, 64M or 67108864, not ${JSON.stringify(text)}`);
  if (size < least) throw mistake(command, `${name} is at least ${sizeText(least)}, not ${JSON.stringify(text)}`);
  return size;
}

/** A size as {@link readSize} reads it, with the largest unit of which it is a multiple. */
export function sizeText(bytes: number): string {
  const prefixes = ['', 'Ki', 'Mi', 'Gi', 'Ti'];
  let power = 0;
  while (power + 1 < prefixes.length && bytes > 0 && bytes % 1024 ** (power + 1) === 0) power++;
  return `${bytes / 1024 ** power}${prefixes[power]}${power === 0 ? '' : 'B'}`;
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { positionals = [] } = command;
  const needed = positionals.filter(({ optional }) => !optional);
  if (given.length < needed.length) {
    const missing = needed[given.length] as Positional;
    throw mistake(command, `${missing.name} is missing: ${missing.help}`);
  }
  if (given.length > positionals.length && !positionals.at(-1)?.many)
    throw mistake(command, `too many arguments: ${given.slice(positionals.length).join(' ')}`);
  given.forEach((word, i) => {
    const { name = '', choices } = positionals[Math.min(i, positionals.length - 1)] ?? {};
    if (choices && !choices.includes(word))
      throw mistake(command, `${name} is ${list(choices, 'or')}, not ${word}${near(word, choices)}`);
  });
}

function mistake({ name }: Command, text: string): H5LogError {
  return new H5LogError('OPTION', `${text}; see h5log ${name} --help`);
}

function suggestion(name: string, table: Options): string {
  const found = nearest(name, Object.keys(table));
  return found === undefined ? '' : ` (did you mean --${found}?)`;
}

function near(text: string, names: readonly string[]): string {
  const found = nearest(text, names);
  return found === undefined ? '' : ` (did you mean ${found}?)`;
}

function list(words: readonly string[], last: string): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}
