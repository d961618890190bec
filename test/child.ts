import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/**
 * Starts a TypeScript module in a Node process of its own, which imports `h5log` from the sources. One process, not a
 * launcher with a child: `kill('SIGKILL')` hits the writer itself.
 *
 * @example const writer = startNode(new URL('./writer.ts', import.meta.url), [path]);
 */
export function startNode(module: URL, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
  const flags = ['--conditions=h5log-source', '--import', tsx];
  return spawn(process.execPath, [...flags, module.pathname, ...args], options);
}
