import type { Command } from './command.ts';

/** Every command: its name, and the module that holds its table. A new one is a file and a line. */
export const commands: Readonly<Record<string, () => Promise<{ default: Command }>>> = {
  bench: () => import('./bench.ts') as Promise<{ default: Command }>,
  demo: () => import('./demo.ts') as Promise<{ default: Command }>,
};
