import { spawn } from 'node:child_process';
import { commandOf } from '../child.ts';
import { oracle } from '../oracles.ts';
import { type Ended, runNode } from '../process.ts';

const program = new URL('../../src/cli/main.ts', import.meta.url);
/** The command line as words for a shell. */
const words = [process.execPath, ...commandOf(program)];

export const slow = { timeout: 120_000 };

/** Runs a command with its output into pipes. */
export function h5log(...args: string[]): Promise<Ended> {
  return runNode(program, args);
}

const PTY = `
import os, pty, sys
sized = ['sh', '-c', 'stty cols "$0"; exec "$@"', *sys.argv[1:]]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sized, lambda fd: os.read(fd, 65536))))
`;

/** Runs a command on a terminal of its own; everything it prints is in `stdout`. */
export function onTerminal(
  args: readonly string[],
  environment: Record<string, string> = {},
  columns = 100,
): Promise<Ended> {
  const { NO_COLOR: _, ...env } = process.env;
  return run(oracle('python') as string, ['-c', PTY, String(columns), ...words, ...args], {
    ...env,
    TERM: 'xterm',
    ...environment,
  });
}

/** Runs `h5log ... | head -n lines`; the exit code is that of h5log. */
export function intoHead(lines: number, ...args: string[]): Promise<Ended> {
  const script = '"$@" | head -n "$0"; exit "$' + '{PIPESTATUS[0]}"';
  return run('bash', ['-c', script, String(lines), ...words, ...args], process.env);
}

function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}
