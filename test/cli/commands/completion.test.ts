import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { h5log, slow } from '../command.ts';

const folder = temporaryDirectory();
for (const name of ['run.h5', 'rest.txt', 'field.h5']) writeFileSync(join(folder, name), '');

const script = async (shell: string): Promise<string> => {
  const { code, stdout, stderr } = await h5log('completion', shell);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
};

/** What a shell offers for the last word of a command line. */
const EXPECTED: readonly (readonly [line: readonly string[], offers: readonly string[]])[] = [
  [['h5log', 'se'], ['seal']],
  [
    ['h5log', 'com'],
    ['compact', 'completion'],
  ],
  [['h5log', 'help', 'ver'], ['verify']],
  [['h5log', 'seal', '--fo'], ['--force']],
  [['h5log', 'stat', '--by', 'f'], ['flush']],
  [['h5log', 'completion', 'z'], ['zsh']],
  [['h5log', 'bench', 'str'], ['stream']],
  [['h5log', 'dump', 'run'], ['run.h5']],
  [['h5log', 'seal', 'run.h5', '--to', 'rest'], ['rest.txt']],
  [['h5log', 'replay', '--memory', 'run'], []],
];

test('bash completes commands, options, their choices, and files', slow, async () => {
  const text = await script('bash');
  for (const [line, offers] of EXPECTED) {
    const words = line.map((word) => `'${word}'`).join(' ');
    // As readline does: the function first, then files if it allows them and offers nothing.
    const program = `${text}
cd '${folder}'
compopt() { [ "$1" = +o ] && files=no; }
files=yes COMP_WORDS=(${words}) COMP_CWORD=${line.length - 1} COMPREPLY=()
_h5log h5log '${line.at(-1)}' '${line.at(-2)}'
[ \${#COMPREPLY[@]} -gt 0 ] || [ $files = no ] || COMPREPLY=($(compgen -f -- '${line.at(-1)}'))
printf '%s\\n' "\${COMPREPLY[@]}"
complete -p h5log`;
    const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', program], { encoding: 'utf8' });
    expect({ line, stderr, status }).toEqual({ line, stderr: '', status: 0 });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.pop()).toBe('complete -o default -F _h5log h5log');
    expect({ line, offers: lines.filter((word) => word !== '').sort() }).toEqual({ line, offers });
  }
});

withOracle('fish', 'h5log completion fish', () => {
  test('fish completes commands, options, their choices, and files', slow, async () => {
    const text = await script('fish');
    const path = join(temporaryDirectory(), 'h5log.fish');
    writeFileSync(path, text);
    for (const [line, offers] of EXPECTED) {
      const program = `source ${path}; cd ${folder}; complete -C '${line.join(' ')}'`;
      const stdout = await run('fish', ['--no-config', '-c', program]);
      const offered = stdout
        .split('\n')
        .map((row) => row.split('\t')[0] as string)
        .filter((word) => word !== '' && word.startsWith(line.at(-1) as string));
      expect({ line, offers: [...new Set(offered)].sort() }).toEqual({ line, offers });
    }
  });
});

withOracle('zsh', 'h5log completion zsh', () => {
  test('zsh completes commands, options, their choices, and files', slow, async () => {
    const path = join(temporaryDirectory(), '_h5log');
    writeFileSync(path, await script('zsh'));
    // An interactive shell on a terminal of its own: types a line, presses the tab key, and then one that prints the line.
    const program = `
zmodload zsh/zpty
zpty shell zsh -f -i
ask() { zpty -w -n shell "$1"$'\\t\\a'; zpty -r -m shell answer '*<<*>>*'; print -r -- "\${\${answer##*<<}%%>>*}" }
zpty -w shell "PROMPT= RPROMPT=; unsetopt beep; autoload -Uz compinit && compinit -u -d '${path}.dump'; source '${path}'; cd '${folder}'"
zpty -w shell 'show() { print -r -- "<""<$BUFFER>"">"; BUFFER= }; zle -N show; bindkey "^G" show; print -r -- re""ady'
zpty -r -m shell answer '*ready*'
${EXPECTED.map(([line]) => `ask '${line.join(' ')}'`).join('\n')}
zpty -d shell`;
    const answers = (await run('zsh', ['-f', '-c', program])).trimEnd().split('\n');
    const expected = EXPECTED.map(([line, offers]) => [...line.slice(0, -1), common(offers) ?? line.at(-1)].join(' '));
    expect(answers.map((answer) => answer.trimEnd())).toEqual(expected);
  });
});

/** What all words begin with; undefined if there are none. */
function common([first, ...rest]: readonly string[]): string | undefined {
  if (first === undefined) return undefined;
  let length = first.length;
  for (const word of rest) while (!word.startsWith(first.slice(0, length))) length--;
  return first.slice(0, length);
}

test('an unknown shell is a mistake', slow, async () => {
  const { code, stdout, stderr } = await h5log('completion', 'csh');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^h5log: OPTION: SHELL is bash, zsh or fish, not csh/);
});
