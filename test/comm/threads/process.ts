import { text } from 'node:stream/consumers';
import { startNode } from '../../child.ts';

/** What runThreads does with these arguments in a process of its own. */
export async function ran(
  args: readonly unknown[],
  environment: Record<string, string> = {},
  manner: 'quiet' | 'loud' = 'quiet',
): Promise<{ stdout: string; stderr: string; code: number | null }> {
  const child = startNode(new URL('./runner.ts', import.meta.url), [manner, JSON.stringify(args)], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [stdout, stderr] = await Promise.all(
    [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : '')),
  );
  return { stdout: stdout ?? '', stderr: stderr ?? '', code: await ended };
}
