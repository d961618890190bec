import { spawn } from 'node:child_process';
import { H5LogError } from '../base/errors.ts';

/** What another program is asked to do; it finds this in H5LOG_BENCH_WORKLOAD, H5LOG_BENCH_FOLDER and H5LOG_BENCH_SCALE. */
export interface ExternalTask {
  readonly workload: string;
  /** A directory for its files. */
  readonly folder: string;
  readonly scale: number;
}

/** A number that stands for itself: not the 5 of h5py. */
const NUMBER = /(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi;
/** Characters of its complaints that are told. */
const TOLD = 300;

/**
 * Runs a command of the shell and gives the seconds that it says it took: the last number in the last line of its output that is not empty.
 *
 * @example await runExternal('python3 rows.py', { workload: 'small', folder, scale: 1 });
 */
export async function runExternal(command: string, { workload, folder, scale }: ExternalTask): Promise<number> {
  const { output, complaints, end } = await outputOf(command, {
    ...process.env,
    H5LOG_BENCH_WORKLOAD: workload,
    H5LOG_BENCH_FOLDER: folder,
    H5LOG_BENCH_SCALE: String(scale),
  });
  if (end !== undefined) throw failed(command, `${end}${complaints === '' ? '' : `: ${complaints.slice(-TOLD)}`}`);
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  const [number] = line.match(NUMBER)?.slice(-1) ?? [];
  if (number === undefined)
    throw failed(command, `must end with a line that says its seconds, not with ${JSON.stringify(line)}`);
  const seconds = Number(number);
  // Without a time there is nothing to compare with.
  if (!(seconds > 0 && Number.isFinite(seconds))) throw failed(command, `cannot have taken ${number} seconds`);
  return seconds;
}

interface Ended {
  readonly output: string;
  readonly complaints: string;
  /** How it failed. */
  readonly end: string | undefined;
}

function outputOf(command: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [output, complaints] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaints += text;
    });
    child.on('error', (cause) => reject(failed(command, `cannot be started: ${cause.message}`, cause)));
    child.on('close', (code, signal) => {
      const end = signal ? `was ended by ${signal}` : code === 0 ? undefined : `ended with exit code ${code}`;
      resolve({ output, complaints: complaints.trim(), end });
    });
  });
}

function failed(command: string, text: string, cause?: unknown): H5LogError {
  return new H5LogError('OPTION', `the external program ${JSON.stringify(command)} ${text}`, { cause });
}
