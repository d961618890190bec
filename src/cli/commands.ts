import type { Command } from './command.ts';

/** Every command: its name, and the module that holds its table. A new one is a file and a line. */
export const commands: Readonly<Record<string, () => Promise<{ default: Command }>>> = {
  bench: () => import('./bench.ts') as Promise<{ default: Command }>,
  compact: () => import('./compact.ts') as Promise<{ default: Command }>,
  demo: () => import('./demo.ts') as Promise<{ default: Command }>,
  diff: () => import('./diff.ts') as Promise<{ default: Command }>,
  dump: () => import('./dump.ts') as Promise<{ default: Command }>,
  ls: () => import('./ls.ts') as Promise<{ default: Command }>,
  replay: () => import('./replay.ts') as Promise<{ default: Command }>,
  seal: () => import('./seal.ts') as Promise<{ default: Command }>,
  stat: () => import('./stat.ts') as Promise<{ default: Command }>,
  verify: () => import('./verify.ts') as Promise<{ default: Command }>,
};
