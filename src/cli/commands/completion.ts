import { type Command, command, type Option, type Positional } from '../command.ts';
import { commonOptions } from '../parse.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export default command({
  name: 'completion',
  summary: 'print a script that completes commands, options and files in a shell',
  details: ['The script is made from the tables of the commands. The examples load it in every new shell.'],
  positionals: [{ name: 'SHELL', help: SHELLS.join(', '), choices: SHELLS }],
  options: {},
  examples: [
    { command: 'h5log completion bash >> ~/.bashrc', says: 'bash' },
    { command: 'h5log completion zsh > /usr/local/share/zsh/site-functions/_h5log', says: 'zsh, with compinit' },
    { command: 'h5log completion fish > ~/.config/fish/completions/h5log.fish', says: 'fish' },
  ],
  async run({ positionals, context, commands }) {
    const tables = await commands();
    const lines = { bash, zsh, fish }[positionals[0] as (typeof SHELLS)[number]](tables);
    context.print([...lines].join('\n'));
    return 0;
  },
});

const optionsOf = (table: Command): [string, Option][] => Object.entries({ ...table.options, ...commonOptions });

/** The spellings of an option: --force, and -f if it has a short one. */
const spellings = (name: string, { short }: Option): string[] => [`--${name}`, ...(short ? [`-${short}`] : [])];

/** Whether a value is a file or a folder, by its name in the help. */
const isFile = (value = ''): boolean => /^(FILE|OUT|DIR|IN|A|B)\b/.test(value);

/** Text between single quotes of bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

// ---------------------------------------------------------------- bash

function* bash(tables: readonly Command[]): Iterable<string> {
  const names = tables.map(({ name }) => name);
  const offer = (words: readonly string[]): string =>
    `COMPREPLY=($(compgen -W ${quoted(words.join(' '))} -- "$word")); return`;
  yield '# Completes h5log in bash: `h5log completion bash` prints this.';
  yield '_h5log() {';
  // With nothing to offer, readline offers files; compopt prevents it.
  yield '  local word=$2 command="$' + '{COMP_WORDS[1]}"';
  yield '  if [ "$COMP_CWORD" -eq 1 ]; then';
  yield `    ${offer([...names, 'help', '--help', '--version'])}`;
  yield '  fi';
  yield '  case "$command $3" in';
  for (const table of tables) {
    for (const [name, option] of optionsOf(table)) {
      if (option.type === 'flag') continue;
      const patterns = spellings(name, option).map((spelling) => quoted(`${table.name} ${spelling}`));
      const action = option.choices
        ? offer(option.choices)
        : isFile(option.value)
          ? 'return'
          : 'compopt +o default; return';
      yield `    ${patterns.join(' | ')}) ${action} ;;`;
    }
  }
  yield '  esac';
  yield '  case "$command $word" in';
  for (const table of tables)
    yield `    ${quoted(`${table.name} -`)}*) ${offer(optionsOf(table).map(([name]) => `--${name}`))} ;;`;
  yield `    'help '*) ${offer(names)} ;;`;
  for (const { name, positionals = [] } of tables) {
    const choices = positionals.flatMap((positional) => positional.choices ?? []);
    if (choices.length > 0) yield `    ${quoted(`${name} `)}*) ${offer(choices)} ;;`;
  }
  yield '  esac';
  yield '}';
  yield 'complete -o default -F _h5log h5log';
}

// ---------------------------------------------------------------- zsh

/** Help between the brackets of an option's specification. */
const inBrackets = (text: string): string => text.replace(/[[\]\\]/g, '\\$&');
const beforeColon = (text: string): string => text.replace(/[:\\]/g, '\\$&');

const zshAction = (choices: readonly string[] | undefined, withFiles: boolean): string =>
  choices ? `(${choices.join(' ')})` : withFiles ? '_files' : ' ';

function* zsh(tables: readonly Command[]): Iterable<string> {
  yield '#compdef h5log';
  yield '# Completes h5log in zsh: `h5log completion zsh` prints this.';
  yield '_h5log() {';
  yield '  local -a names';
  yield '  names=(';
  for (const { name, summary } of tables) yield `    ${quoted(`${name}:${beforeColon(summary)}`)}`;
  yield "    'help:explain a command'";
  yield '  )';
  yield '  if (( CURRENT == 2 )); then';
  yield "    _arguments '--help[print help]' '--version[print the version]' '1: :{_describe command names}'";
  yield '    return';
  yield '  fi';
  yield '  local name=$words[2]';
  yield '  shift words; (( CURRENT-- ))';
  yield '  case $name in';
  for (const table of tables) {
    yield `    ${table.name})`;
    yield '      _arguments -s \\';
    const specifications = [
      ...optionsOf(table).map(([name, option]) => zshOption(name, option)),
      ...zshPositionals(table),
    ];
    for (const [i, text] of specifications.entries())
      yield `        ${text}${i + 1 < specifications.length ? ' \\' : ''}`;
    yield '      ;;';
  }
  yield '    help) _describe command names ;;';
  yield '  esac';
  yield '}';
  // In a folder of $fpath the file itself is the function; sourced, it registers the function.
  yield 'if [ "$funcstack[1]" = _h5log ]; then _h5log "$@"; else compdef _h5log h5log; fi';
}

function zshOption(name: string, option: Option): string {
  const { type, value = 'VALUE', choices, many, help } = option;
  const all = spellings(name, option);
  const excluded = many ? '*' : all.length > 1 ? `(${all.join(' ')})` : '';
  const argument = type === 'flag' ? '' : `:${beforeColon(value)}:${zshAction(choices, isFile(value))}`;
  const text = quoted(`[${inBrackets(help)}]${argument}`);
  return all.length > 1 ? `${quoted(excluded)}{${all.join(',')}}${text}` : quoted(`${excluded}${all[0]}`) + text;
}

function zshPositionals({ positionals = [] }: Command): string[] {
  return positionals.map(({ name, many, choices }: Positional, i) =>
    quoted(`${many ? '*' : i + 1}:${beforeColon(name)}:${zshAction(choices, true)}`),
  );
}

// ---------------------------------------------------------------- fish

/** Text between single quotes of fish. */
const fishQuoted = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;

function* fish(tables: readonly Command[]): Iterable<string> {
  const line = (condition: string, ...rest: string[]): string =>
    ['complete -c h5log', `-n ${fishQuoted(condition)}`, ...rest].join(' ');
  yield '# Completes h5log in fish: `h5log completion fish` prints this.';
  yield line('__fish_use_subcommand', '-l help -d', fishQuoted('print help'));
  yield line('__fish_use_subcommand', '-l version -d', fishQuoted('print the version'));
  yield line('__fish_use_subcommand', '-f -a help -d', fishQuoted('explain a command'));
  for (const { name, summary } of tables) yield line('__fish_use_subcommand', '-f -a', name, '-d', fishQuoted(summary));
  for (const { name, summary } of tables)
    yield line('__fish_seen_subcommand_from help', '-f -a', name, '-d', fishQuoted(summary));
  for (const table of tables) {
    const condition = `__fish_seen_subcommand_from ${table.name}; and not __fish_seen_subcommand_from help`;
    for (const [name, { type, short, value, choices, help }] of optionsOf(table)) {
      const argument = choices ? [`-x -a ${fishQuoted(choices.join(' '))}`] : isFile(value) ? ['-r -F'] : ['-x'];
      const parts = [`-l ${name}`, ...(short ? [`-s ${short}`] : []), ...(type === 'flag' ? [] : argument)];
      yield line(condition, ...parts, '-d', fishQuoted(help));
    }
    const choices = (table.positionals ?? []).flatMap((positional) => positional.choices ?? []);
    if (choices.length > 0) yield line(condition, '-f -a', fishQuoted(choices.join(' ')));
  }
}
