import { withoutRank } from '../../comm/agreement.ts';
import { rankModule, runThreads } from '../../comm/threads/run.ts';
import { LEAST_MEMORY } from '../run.ts';
import type { ReplayOptions, ReplayResult } from './options.ts';

/** Milliseconds between two progress reports. */
const INTERVAL = 100;

/** What a thread is started with. */
export interface ReplayTask {
  readonly input: string;
  readonly output: string;
  readonly memory: number;
  readonly force: boolean;
  readonly libver: 'latest' | 'earliest';
  /** Shared memory: bytes done, total bytes, and 1 to stop. */
  readonly state: Float64Array;
}

/** Replays on several threads of this process. */
export async function replayOnThreads(
  threads: number,
  input: string | URL,
  output: string | URL,
  options: ReplayOptions & { memory: number },
): Promise<ReplayResult> {
  const { memory, force = false, libver = 'latest', progress, signal, filterModules = [] } = options;
  const state = new Float64Array(new SharedArrayBuffer(24));
  const task: ReplayTask = {
    input: String(input),
    output: String(output),
    memory: Math.max(LEAST_MEMORY, Math.floor(memory / threads)),
    force,
    libver,
    state,
  };
  const timer = setInterval(() => {
    if (signal?.aborted) state[2] = 1;
    progress?.({ bytes: state[0] as number, total: state[1] as number, dataset: '' });
  }, INTERVAL);
  try {
    const [result] = await runThreads<ReplayResult>(threads, rankModule('replay-rank', import.meta.url), task, {
      filterModules,
    });
    return result as ReplayResult;
  } catch (error) {
    signal?.throwIfAborted();
    throw withoutRank(error);
  } finally {
    clearInterval(timer);
  }
}
