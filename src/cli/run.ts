import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { H5LogError } from '../base/errors.ts';
import { nearest } from '../base/options.ts';
import type { Command, ExitCode } from './command.ts';
import { commands } from './commands.ts';
import { findContext, launcherOfSeveral } from './context.ts';
import { helpOf, helpOfAll } from './help.ts';
import { parse } from './parse.ts';
import { failureText } from './print.ts';

/** Milliseconds that the other ranks leave the first one to report an error. */
const REPORT_DELAY = 3000;

/** Runs the command line: prints results and errors, and returns the exit code. */
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
    // Every rank has the same arguments; the first one reports what is wrong with them.
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
    // Most errors are thrown on all ranks. The first rank reports, and its exit ends the job. If it does not know of the error,
    // because it waits for this rank, this rank reports.
    if (!isFirst) await sleep(REPORT_DELAY);
    tell(error);
    return 2;
  }
}

/** Parses the arguments. Returns a function that runs the command. */
async function prepare(args: readonly string[], say: (text: string) => void): Promise<() => Promise<ExitCode>> {
  const [first, ...rest] = args;
  if (first === '--version' || first === '-V') return fine(() => say(version()));
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    const [topic] = rest.filter((arg) => !arg.startsWith('-'));
    const text = topic === undefined ? helpOfAll(await allCommands()) : helpOf(await find(topic));
    return fine(() => say(text));
  }
  const command = await find(first);
  const { values, positionals, help, filterModules } = parse(command, rest);
  if (help) return fine(() => say(helpOf(command)));
  return async () => {
    const context = await findContext(filterModules);
    try {
      const code = await command.run({ values, positionals, context, commands: allCommands });
      // Every rank ends with the same exit code.
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
  // hasOwn: names such as toString are not commands.
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

/** The version of the package. Sources and built files are equally deep in it, so the path is the same. */
function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}
