import { spawn } from 'node:child_process';
import { H5LogError } from '../base/errors.ts';

/** The task of another program, passed in H5LOG_BENCH_WORKLOAD, H5LOG_BENCH_FOLDER and H5LOG_BENCH_SCALE. */
export interface ExternalTask {
  readonly workload: string;
  /** Directory for its files. */
  readonly folder: string;
  readonly scale: number;
}

/** A number that is not part of a word: not the 5 of h5py. */
const NUMBER = /(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi;
/** Characters of its standard error that are reported. */
const MAX_STDERR = 300;

/**
 * Runs a shell command and returns the seconds that it reports: the last number in the last line of its output that is not empty.
 *
 * @example await runExternal('python3 rows.py', { workload: 'small', folder, scale: 1 });
 */
export async function runExternal(command: string, { workload, folder, scale }: ExternalTask): Promise<number> {
  const { output, stderr, end } = await outputOf(command, {
    ...process.env,
    H5LOG_BENCH_WORKLOAD: workload,
    H5LOG_BENCH_FOLDER: folder,
    H5LOG_BENCH_SCALE: String(scale),
  });
  if (end !== undefined) throw failed(command, `${end}${stderr === '' ? '' : `: ${stderr.slice(-MAX_STDERR)}`}`);
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  const [number] = line.match(NUMBER)?.slice(-1) ?? [];
  if (number === undefined)
    throw failed(command, `must print its seconds in the last line, not ${JSON.stringify(line)}`);
  const seconds = Number(number);
  // Zero seconds cannot be compared with.
  if (!(seconds > 0 && Number.isFinite(seconds))) throw failed(command, `cannot have taken ${number} seconds`);
  return seconds;
}

interface Ended {
  readonly output: string;
  readonly stderr: string;
  /** How it failed. */
  readonly end: string | undefined;
}

function outputOf(command: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [output, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', (cause) => reject(failed(command, `cannot be started: ${cause.message}`, cause)));
    child.on('close', (code, signal) => {
      const end = signal ? `was ended by ${signal}` : code === 0 ? undefined : `ended with exit code ${code}`;
      resolve({ output, stderr: stderr.trim(), end });
    });
  });
}

function failed(command: string, text: string, cause?: unknown): H5LogError {
  return new H5LogError('OPTION', `the external program ${JSON.stringify(command)} ${text}`, { cause });
}
