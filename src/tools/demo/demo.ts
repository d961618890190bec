import { H5LogError } from '../../base/errors.ts';
import { ANY, CALLBACK, checkOptions, FLAG, type Kinds } from '../../base/options.ts';
import { onAllRanks } from '../../comm/agreement.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { sameCall } from '../../comm/same-call.ts';
import { solo } from '../../comm/solo.ts';
import { rankModule } from '../../comm/threads/run.ts';
import { runThreads } from '../../threads.ts';
import { type DemoReport, type DemoTask, demoRank } from './demo-rank.ts';

export type { DemoReport, WrongElement } from './demo-rank.ts';

export interface DemoOptions {
  /** Ranks that call this together; without it threads are started. */
  comm?: Communicator;
  /** How many threads; 1 unless it is said. */
  ranks?: number;
  /** Elements of the field a side. */
  size?: number;
  steps?: number;
  /** How many files besides the main one; 0: none. */
  subfiles?: number;
  /** How the ranks write; 'mpi-io' needs ranks of MPI. */
  storage?: 'node' | 'mpi-io';
  /** Only check a file that was written before. */
  check?: boolean;
  /** Called now and then on the first rank: steps written and checked, of how many; of a file that is only checked the latter is 0. */
  onProgress?: (done: number, of: number) => void;
}

const OPTIONS: Kinds<DemoOptions> = {
  comm: ANY,
  ranks: ANY,
  size: ANY,
  steps: ANY,
  subfiles: ANY,
  storage: ANY,
  check: FLAG,
  onProgress: CALLBACK,
};

/** Milliseconds between two looks at what threads have done. */
const INTERVAL = 50;

/**
 * Writes a field from several ranks with overlapping halos, a commit a step, and reads back and checks every element.
 *
 * @example const { wrong } = await demo('field.h5', { ranks: 4, steps: 10 });
 */
export async function demo(path: string, options: DemoOptions = {}): Promise<DemoReport> {
  const {
    comm,
    ranks = 1,
    size = 512,
    steps = 10,
    subfiles = 0,
    storage = 'node',
    check = false,
    onProgress = () => {},
  } = options ?? {};
  onAllRanks(comm ?? solo(), () => {
    checkOptions('demo', options, OPTIONS);
    for (const [name, value] of Object.entries({ size, steps })) {
      if (!Number.isSafeInteger(value) || value < 1)
        throw new H5LogError('OPTION', `${name} is a whole number from 1 up, not ${value}`);
    }
    if (size * size * steps * (comm?.size ?? ranks) > Number.MAX_SAFE_INTEGER)
      throw new H5LogError('OPTION', `${steps} steps of ${size} x ${size} are too many to number their elements`);
  });
  if (comm && comm.size > 1) sameCall(comm, 'demo', () => ({ path, size, steps, subfiles, storage, check }));
  const of = check ? 0 : 2 * steps;
  const task = (count: Int32Array): DemoTask => ({ path, check, size, steps, subfiles, storage, count });
  if (comm) {
    const count = new Int32Array(1);
    return demoRank(comm, task(count), () => onProgress(count[0] as number, of));
  }
  const count = new Int32Array(new SharedArrayBuffer(4));
  const timer = setInterval(() => onProgress(Atomics.load(count, 0), of), INTERVAL);
  try {
    const [report] = await runThreads<DemoReport>(ranks, rankModule('demo-rank', import.meta.url), task(count));
    return report as DemoReport;
  } finally {
    clearInterval(timer);
  }
}
