import type { Command, Option, Options, Positional } from './command.ts';
import { commonOptions, sizeText } from './parse.ts';

const WIDTH = 100;

/** The help of the program: all commands. */
export function helpOfAll(commands: readonly Command[]): string {
  return [
    'h5log: log-structured HDF5',
    '',
    'usage: h5log COMMAND [options]',
    '',
    'commands:',
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    '',
    'h5log help COMMAND explains a command. Options of every command:',
    ...columns([...rows(commonOptions), ['    --version', 'print the version (without a command)']]),
    '',
    'exit code: 0 success, 1 files differ or are damaged, 2 wrong usage or another error',
  ].join('\n');
}

/** The help of a command, derived from its table. */
export function helpOf(command: Command): string {
  const { name, summary, details = [], positionals = [], options, examples = [] } = command;
  const lines = [
    `h5log ${name}: ${summary}`,
    '',
    `usage: h5log ${[name, '[options]', ...positionals.map(usage)].join(' ')}`,
  ];
  for (const paragraph of details) lines.push('', ...wrap(paragraph, WIDTH));
  if (positionals.length > 0)
    lines.push('', 'arguments:', ...columns(positionals.map((positional) => [positional.name, positional.help])));
  lines.push('', 'options:', ...columns(rows({ ...options, ...commonOptions })));
  if (examples.length > 0) {
    lines.push('', 'examples:');
    for (const example of examples) {
      const text = /(^|[\s/])h5log\s/.test(example.command) ? example.command : `h5log ${example.command}`;
      lines.push(`  ${text}`, `      ${example.says}`);
    }
  }
  return lines.join('\n');
}

function usage({ name, optional, many }: Positional): string {
  const text = many ? `${name}...` : name;
  return optional ? `[${text}]` : text;
}

function rows(options: Options): [string, string][] {
  return Object.entries(options).map(([name, option]) => [left(name, option), noteOf(option)]);
}

function left(name: string, { short, type, value }: Option): string {
  const start = short ? `-${short}, ` : '    ';
  return `${start}--${name}${type === 'flag' ? '' : ` ${value ?? 'VALUE'}`}`;
}

/** What an option does, with its choices and its default. */
export function noteOf(option: Option): string {
  const { help, choices, otherwise, many } = option;
  const fixed =
    option.type === 'size' && typeof option.default === 'number' ? sizeText(option.default) : option.default;
  const notes = [
    ...(choices ? [choices.join(', ')] : []),
    ...(many ? ['may be repeated'] : []),
    ...(otherwise !== undefined ? [`default: ${otherwise}`] : fixed !== undefined ? [`default: ${fixed}`] : []),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join('; ')})`;
}

function columns(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.flatMap(([name, text]) =>
    wrap(text, WIDTH - width - 4).map((line, i) => `  ${(i === 0 ? name : '').padEnd(width)}  ${line}`),
  );
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
