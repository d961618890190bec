import type { Communicator } from '../../comm/communicator.ts';
import type { ReplayResult } from './options.ts';
import { replay } from './replay.ts';
import type { ReplayTask } from './threads.ts';

/** One thread of a replay. */
export default function replayRank(comm: Communicator, task: ReplayTask): Promise<ReplayResult> {
  const { input, output, memory, force, libver, state } = task;
  const stop = new AbortController();
  return replay(input, output, {
    memory,
    force,
    libver,
    comm,
    signal: stop.signal,
    progress: ({ bytes, total }) => {
      if (comm.rank === 0) [state[0], state[1]] = [bytes, total];
      if (state[2] === 1) stop.abort();
    },
  });
}
