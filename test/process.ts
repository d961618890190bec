import type { SpawnOptions } from 'node:child_process';
import { startNode } from './child.ts';

/** What a process printed and how it ended. */
export interface Ended {
  /** null if a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a TypeScript module in a Node process of its own, to its end. `seen` is called with all of its output so far. */
export function runNode(
  module: URL,
  args: readonly string[] = [],
  options: SpawnOptions & { seen?: (stdout: string, kill: () => void) => void } = {},
): Promise<Ended> {
  const { seen, ...rest } = options;
  return new Promise((resolve, reject) => {
    const child = startNode(module, args, { stdio: ['ignore', 'pipe', 'pipe'], ...rest });
    let [stdout, stderr] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      seen?.(stdout, () => child.kill('SIGKILL'));
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}
