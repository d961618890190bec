import { writeSync } from 'node:fs';
import type { Communicator } from '../../src/comm/communicator.ts';
import { type CreateOptions, File } from '../../src/index.ts';

interface Flushing {
  readonly path: string;
  readonly subfiles: number;
  readonly create?: Pick<CreateOptions, 'logs' | 'table'>;
  /** Milliseconds between two flushes; none unless it is said. */
  readonly rest?: number;
}

/** Flushes again and again, until the process is killed; rank 0 says which flushes have returned. */
export default function flushForever(comm: Communicator, { path, subfiles, create, rest = 0 }: Flushing): void {
  const file = File.createSync(path, { comm, subfiles, ...create });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [0, comm.size, 16], maxShape: [null, comm.size, 16] });
  for (let k = 1; ; k++) {
    t.resize([k, comm.size, 16]);
    t.write(new Int32Array(16).fill(k), { start: [k - 1, comm.rank, 0], count: [1, 1, 16] });
    file.attributes.set('k', k);
    file.flushSync();
    if (comm.rank === 0) say(`${k}\n`);
    if (rest > 0) pause(rest);
  }
}

/** Whoever reads may be busy, and the pipe full. */
function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      pause(1);
    }
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
