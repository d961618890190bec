import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { H5LogError } from '../base/errors.ts';
import type { Command, ExitCode } from './command.ts';
import { commands } from './commands.ts';
import { findContext, launcherOfSeveral } from './context.ts';
import { helpOf, helpOfAll } from './help.ts';
import { nearest, parse } from './parse.ts';
import { failureText } from './print.ts';

/** Milliseconds that the first rank has for its message. */
const PATIENCE = 3000;

/** Runs the command line; prints what there is to say and gives the exit code. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const started = launcherOfSeveral();
  const isFirst = !started || started.rank === 0;
  const debug = args.includes('--debug');
  const say = (text: string): void => {
    if (isFirst) process.stdout.write(`${text}\n`);
  };
  const tell = (error: unknown): void => {
    const who = isFirst ? '' : `rank ${started.rank} of ${started.size}: `;
    process.stderr.write(`${who}${failureText(error, debug)}`);
  };
  let call: () => Promise<ExitCode>;
  try {
    // Every rank sees the same arguments; the first one speaks of what is wrong with them.
    call = await prepare(
      args.filter((arg, i) => !(arg === '--debug' && i === 0)),
      say,
    );
  } catch (error) {
    if (isFirst) tell(error);
    return 2;
  }
  try {
    return await call();
  } catch (error) {
    // Most errors are those of all ranks. The first one prints, leaves, and ends the job by that; if it does not, because it knows
    // nothing of the error and waits for this rank, it is this rank's turn.
    if (!isFirst) await sleep(PATIENCE);
    tell(error);
    return 2;
  }
}

/** Finds out what is wanted, without doing it. */
async function prepare(args: readonly string[], say: (text: string) => void): Promise<() => Promise<ExitCode>> {
  const [first, ...rest] = args;
  if (first === undefined) throw new H5LogError('OPTION', 'a command is missing; see h5log --help');
  if (first === '--version' || first === '-V') return fine(() => say(version()));
  if (first === '--help' || first === '-h' || first === 'help') {
    const [topic] = rest.filter((arg) => !arg.startsWith('-'));
    const text = topic === undefined ? helpOfAll(await allCommands()) : helpOf(await find(topic));
    return fine(() => say(text));
  }
  const command = await find(first);
  const { values, positionals, help } = parse(command, rest);
  if (help) return fine(() => say(helpOf(command)));
  return async () => {
    const context = await findContext();
    try {
      const code = await command.run({ values, positionals, context });
      // Every rank leaves with the same.
      return Math.max(...context.comm.allreduce(Float64Array.of(code), 'max')) as ExitCode;
    } finally {
      context.progress.clear();
    }
  };
}

function fine(work: () => void): () => Promise<ExitCode> {
  return async () => {
    work();
    return 0;
  };
}

async function find(name: string): Promise<Command> {
  // Names that every object has are no commands.
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load) return (await load()).default;
  const what = name.startsWith('-') ? 'option' : 'command';
  const meant = nearest(
    name,
    what === 'option' ? ['--help', '--version', '--debug'] : ['help', ...Object.keys(commands)],
  );
  const hint = meant === undefined ? '' : ` (did you mean ${meant}?)`;
  throw new H5LogError('OPTION', `unknown ${what} ${name}${hint}; see h5log --help`);
}

function allCommands(): Promise<Command[]> {
  return Promise.all(Object.values(commands).map(async (load) => (await load()).default));
}

/** That of the package; sources and built files are equally deep in it. */
function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}
