import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { builtCommand } from '../scripts/root.ts';
import type { Figure, Workload } from '../src/bench/workload.ts';

/** The command as it was built, which is what users run. Through the loader that these programs are started with, E3SM took two to three times as long, once, on a busy machine. */
export const COMMAND = builtCommand;

/** Runs it in a process of its own. */
export function runCommand(args: readonly string[]): Promise<{ stdout: string }> {
  return promisify(execFile)(process.execPath, [COMMAND, ...args], { encoding: 'utf8', maxBuffer: 2 ** 26 });
}

/** A workload of the package, run by the built command. */
export function builtWorkload({ name, summary }: Workload): Workload {
  return {
    name,
    summary,
    async *run({ folder, scale, repeat }) {
      const sizes = ['--scale', String(scale), '--repeat', String(repeat)];
      const { stdout } = await runCommand(['bench', name, ...sizes, '--out', folder, '--json']);
      yield* (JSON.parse(stdout) as { figures: Figure[] }).figures;
    },
  };
}
