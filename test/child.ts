import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { builtCommand } from '../scripts/root.ts';

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** How Node runs a TypeScript module: the command line as it was built, anything else through a loader. */
export function commandOf(module: URL): string[] {
  if (module.pathname.endsWith('/src/cli/main.ts')) return [builtCommand];
  return ['--conditions=h5log-source', '--import', tsx, module.pathname];
}

/**
 * Starts a TypeScript module in a Node process of its own, which imports `h5log` from the sources; the command line is started as it was
 * built. One process, not a launcher with a child: `kill('SIGKILL')` hits the writer itself.
 *
 * @example const writer = startNode(new URL('./writer.ts', import.meta.url), [path]);
 */
export function startNode(module: URL, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
  return spawn(process.execPath, [...commandOf(module), ...args], options);
}
