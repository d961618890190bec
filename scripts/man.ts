// Writes man/h5log.1, the manual page, from the tables of the commands. Usage: tsx scripts/man.ts
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command, Option, Options, Positional } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { noteOf } from '../src/cli/help.ts';
import { commonOptions } from '../src/cli/parse.ts';
import { root } from './root.ts';

export const page = join(root, 'man', 'h5log.1');

/** The page as it should be now. */
export async function manPage(): Promise<string> {
  const tables = await Promise.all(Object.values(commands).map(async (load) => (await load()).default));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  return `${[...lines(tables, version)].join('\n')}\n`;
}

function* lines(tables: readonly Command[], version: string): Iterable<string> {
  yield '.\\" Written by scripts/man.ts from the tables of the commands: npm run cli-docs';
  yield `.TH H5LOG 1 "" "h5log ${version}" "User Commands"`;
  yield '.SH NAME';
  yield 'h5log \\- log\\-structured HDF5';
  yield '.SH SYNOPSIS';
  yield '.B h5log';
  yield '.I COMMAND';
  yield '[options]';
  yield '.SH DESCRIPTION';
  yield 'Lists, prints, checks and converts HDF5 files with a log, and ordinary HDF5 files. Results go to standard output, progress and errors to standard error.';
  yield '.SH COMMANDS';
  for (const table of tables) yield* command(table);
  yield '.SH OPTIONS OF EVERY COMMAND';
  yield* options(commonOptions);
  yield '.TP';
  yield '.B \\-\\-version';
  yield 'print the version (without a command)';
  yield '.SH SIZES';
  yield 'A SIZE is a number of bytes, or a number with a unit: 67108864, 64M, 64MB and 64MiB are the same. Units are powers of 1024.';
  yield '.SH EXIT STATUS';
  for (const [code, meaning] of [
    ['0', 'success'],
    ['1', 'files differ or are damaged'],
    ['2', 'wrong usage or another error'],
  ] as const)
    yield* ['.TP', `.B ${code}`, meaning];
  yield '.SH ENVIRONMENT';
  yield* ['.TP', '.B NO_COLOR', 'switches colours off, if it is not empty'];
  yield '.SH SEE ALSO';
  yield '.BR h5dump (1),';
  yield '.BR h5ls (1),';
  yield '.BR h5diff (1)';
}

function* command({ name, summary, details = [], positionals = [], options: own, examples = [] }: Command) {
  yield `.SS h5log ${[name, '[options]', ...positionals.map(usage)].map(roff).join(' ')}`;
  yield text(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`);
  for (const paragraph of details) yield* ['.PP', text(paragraph)];
  for (const { name: argument, help } of positionals) yield* ['.TP', `.I ${roff(argument)}`, text(help)];
  yield* options(own);
  for (const { command: example, says } of examples) {
    const line = /(^|[\s/])h5log\s/.test(example) ? example : `h5log ${example}`;
    yield* ['.PP', `Example: ${roff(says)}`, '.PP', '.in +4n', '.nf', text(line), '.fi', '.in'];
  }
}

function* options(table: Options): Iterable<string> {
  for (const [name, option] of Object.entries(table)) yield* ['.TP', heading(name, option), text(noteOf(option))];
}

function heading(name: string, { short, type, value = 'VALUE' }: Option): string {
  const spellings = [...(short ? [`-${short}`] : []), `--${name}`].map((spelling) => `\\fB${roff(spelling)}\\fR`);
  return `${spellings.join(', ')}${type === 'flag' ? '' : ` \\fI${roff(value)}\\fR`}`;
}

function usage({ name, optional, many }: Positional): string {
  const shown = many ? `${name}...` : name;
  return optional ? `[${shown}]` : shown;
}

const roff = (plain: string): string => plain.replaceAll('\\', '\\e').replaceAll('-', '\\-');

/** A line of text: one that begins with a dot or a quote would be a command of roff. */
const text = (plain: string): string => roff(plain).replace(/^(?=[.'])/, '\\&');

if (process.argv[1] === new URL(import.meta.url).pathname) {
  mkdirSync(dirname(page), { recursive: true });
  writeFileSync(page, await manPage());
  process.stdout.write('written: man/h5log.1\n');
}
