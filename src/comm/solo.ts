import { H5LogError } from '../errors.ts';
import type { Communicator } from './communicator.ts';

/** One rank, alone: every collective is done at once. */
class Solo implements Communicator {
  readonly rank = 0;
  readonly size = 1;
  readonly kind = 'solo' as const;

  barrier(): void {}

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    checkRoot(root);
    if (!bytes) throw new H5LogError('COMM', 'bcast: the root has nothing to send', { rank: 0 });
    return bytes.slice();
  }

  allreduce(values: Float64Array, _op: 'sum' | 'min' | 'max'): Float64Array {
    return values.slice();
  }

  exscan(values: Float64Array): Float64Array {
    return new Float64Array(values.length);
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] {
    checkRoot(root);
    return [bytes.slice()];
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    return [bytes.slice()];
  }

  split(_color: number): Communicator {
    return new Solo();
  }

  abort(code: number): never {
    throw new H5LogError('COMM', `aborted with code ${code}`, { rank: 0 });
  }

  close(): void {}
}

function checkRoot(root: number): void {
  if (root !== 0) throw new H5LogError('COMM', `there is no rank ${root}, only rank 0`, { rank: 0 });
}

/** A communicator of one rank. */
export function solo(): Communicator {
  return new Solo();
}
