import type { Command } from './command.ts';

/** The modules of all commands, by name. A new command needs a file and a line here. */
export const commands: Readonly<Record<string, () => Promise<{ default: Command }>>> = {
  bench: () => import('./commands/bench.ts') as Promise<{ default: Command }>,
  browse: () => import('./commands/browse.ts') as Promise<{ default: Command }>,
  'code-cache': () => import('./commands/code-cache.ts') as Promise<{ default: Command }>,
  compact: () => import('./commands/compact.ts') as Promise<{ default: Command }>,
  completion: () => import('./commands/completion.ts') as Promise<{ default: Command }>,
  demo: () => import('./commands/demo.ts') as Promise<{ default: Command }>,
  diff: () => import('./commands/diff.ts') as Promise<{ default: Command }>,
  dump: () => import('./commands/dump.ts') as Promise<{ default: Command }>,
  ls: () => import('./commands/ls.ts') as Promise<{ default: Command }>,
  publish: () => import('./commands/publish.ts') as Promise<{ default: Command }>,
  replay: () => import('./commands/replay.ts') as Promise<{ default: Command }>,
  seal: () => import('./commands/seal.ts') as Promise<{ default: Command }>,
  stat: () => import('./commands/stat.ts') as Promise<{ default: Command }>,
  verify: () => import('./commands/verify.ts') as Promise<{ default: Command }>,
};
