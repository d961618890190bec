import { type SpawnSyncOptions, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** The command line as it was built. */
export const builtCommand = join(root, 'dist', 'node', 'cli.js');

/** What package.json says of the package's entry points. */
export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
}

/** Runs the project's own TypeScript compiler; gives what it printed, and whether it was content. */
export function tsc(args: readonly string[], cwd = root): { ok: boolean; output: string } {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, ...args], { cwd, encoding: 'utf8' });
  return { ok: status === 0, output: `${stdout}${stderr}`.trim() };
}

/** Runs a command to its end and gives its standard output; standard error is passed on. Another exit code than 0 throws. */
export function execute(command: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const result = spawnSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'], ...options, encoding: 'utf8' });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    throw new Error(
      `${command} ${args.join(' ')} ended with ${result.status ?? result.signal}\n${result.stdout ?? ''}`,
    );
  }
  return result.stdout ?? '';
}
