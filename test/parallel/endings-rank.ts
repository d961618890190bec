import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';

export interface Ending {
  readonly how: string;
  readonly path: string;
  readonly who: number;
  readonly subfiles: number;
}

/** Commits 1 everywhere, posts 2, and then rank `who` ends in some way. */
export default function end(comm: Communicator, { how, path, who, subfiles }: Ending): unknown {
  const timeout = how === 'stuck in a flush' || how === 'never opens again' ? { timeout: 1500 } : {};
  const file = File.createSync(path, { comm, subfiles, ...timeout });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [comm.size] });
  const post = (value: number): void => t.write(Int32Array.of(value), { start: [comm.rank], count: [1] });
  post(1);
  file.flushSync();
  post(2);
  const isIt = comm.rank === who;
  switch (how) {
    case 'throws':
      if (isIt) throw new RangeError('the tide is out');
      file.flushSync();
      break;
    case 'exits':
      if (isIt) process.exit(3);
      file.flushSync();
      break;
    case 'returns without close':
      if (isIt) return 'gone';
      file.flushSync();
      break;
    case 'all return without close':
      break;
    case 'one returns with everything flushed':
      file.flushSync();
      if (isIt) return 'gone';
      file.closeSync();
      break;
    case 'stuck in a flush':
      if (isIt) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      file.flushSync();
      break;
    case 'never opens again':
      if (isIt) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      File.openSync(path, { comm, timeout: 1500 });
      break;
    case 'stuck while others throw':
      if (isIt) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      throw new Error('somebody is stuck');
    case 'aborts':
      if (isIt) comm.abort(7);
      file.flushSync();
      break;
    case 'discards':
      if (isIt) file.discard();
      else file.flushSync();
      break;
    default:
      throw new Error(`no ending ${how}`);
  }
  return 'fine';
}
