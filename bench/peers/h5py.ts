import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { flushesAt } from './flushes.ts';
import { type Peer, type PeerFigure, type PeerTask, partOf } from './peer.ts';
import { python } from './python.ts';
import { BOX, READS, rowsAt } from './small.ts';
import { blocksAt } from './stream.ts';

const SCRIPT = fileURLToPath(new URL('./h5py_peer.py', import.meta.url));
const ROWS = 20_000;
const FLUSHES = 10_000;

/** libhdf5 in Python. A contiguous dataset cannot grow: of many flushes there is a chunked form only. */
export function h5py(layout: 'contiguous' | 'chunked'): Peer {
  const run = async (workload: string, { folder }: PeerTask, sizes: object, part = 1): Promise<PeerFigure[]> => {
    const path = join(folder, `${layout}.h5`);
    const found = await python<Record<string, number>>(SCRIPT, [JSON.stringify({ workload, path, ...sizes })]);
    return Object.entries(found).map(([id, seconds]) => {
      // What is read is always all of it.
      return { id, seconds, part: /write|total/.test(id) ? part : 1 };
    });
  };
  const chunked = layout === 'chunked';
  return {
    name: `h5py ${layout}`,
    workloads: {
      small(task) {
        const rows = rowsAt(task.scale);
        const { count, part } = partOf(rows, ROWS, task);
        return run('small', task, { chunked, rows, count, reads: READS, box: BOX }, part);
      },
      stream: (task) => run('stream', task, { chunked, blocks: blocksAt(task.scale) }),
      ...(chunked && {
        flushes(task: PeerTask) {
          const flushes = flushesAt(task.scale);
          const { count, part } = partOf(flushes, FLUSHES, task);
          return run('flushes', task, { flushes, count }, part);
        },
      }),
    },
  };
}
