import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { lastLine } from '../mpi.ts';

const execute = promisify(execFile);

/** The system's Python, for which apt installs h5py, or the one of H5LOG_PYTHON. */
export const PYTHON = process.env.H5LOG_PYTHON ?? '/usr/bin/python3';

/** Whether Python has these modules: undefined, or what is missing. */
export async function pythonLacks(modules: string, packages: string): Promise<string | undefined> {
  try {
    await execute(PYTHON, ['-c', `import ${modules}`]);
    return undefined;
  } catch {
    return `${PYTHON} with ${modules} is not installed; apt install ${packages}`;
  }
}

/** What a script prints in its last line. */
export async function python<T>(script: string, args: readonly string[]): Promise<T> {
  const { stdout } = await execute(PYTHON, [script, ...args], { encoding: 'utf8' });
  return lastLine<T>(stdout);
}
