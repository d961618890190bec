import { H5LogError } from '../base/errors.ts';
import {
  type Communicator,
  problemOfBytes,
  problemOfColor,
  problemOfReduction,
  problemOfRoot,
  problemOfTimeout,
  problemOfValues,
  type Reduction,
  type TimeoutCommunicator,
} from './communicator.ts';

/**
 * One rank: every collective returns at once. Checks arguments as strictly as the others, so that mistakes show before there are many ranks;
 * in a page there never are.
 */
class Solo implements TimeoutCommunicator {
  readonly rank = 0;
  readonly size = 1;
  readonly kind = 'solo' as const;
  #timeout: number;
  #closed = false;

  constructor(timeout: number) {
    this.#timeout = timeout;
  }

  get timeout(): number {
    return this.#timeout;
  }

  set timeout(timeout: number) {
    const problem = problemOfTimeout(timeout);
    if (problem) throw new H5LogError('OPTION', problem);
    this.#timeout = timeout;
  }

  barrier(): void {
    this.#check('barrier');
  }

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    if (!import.meta.page) this.#check('bcast', problemOfRoot(root, 1) ?? problemOfBytes(bytes));
    // Not slice(): on a Buffer it returns a view.
    return new Uint8Array(bytes as Uint8Array);
  }

  allreduce(values: Float64Array, op: Reduction): Float64Array {
    if (!import.meta.page) this.#check('allreduce', problemOfValues(values) ?? problemOfReduction(op));
    return new Float64Array(values);
  }

  exscan(values: Float64Array): Float64Array {
    if (!import.meta.page) this.#check('exscan', problemOfValues(values));
    return new Float64Array(values.length);
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] {
    if (!import.meta.page) this.#check('gather', problemOfRoot(root, 1) ?? problemOfBytes(bytes));
    return [new Uint8Array(bytes)];
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    if (!import.meta.page) this.#check('allgather', problemOfBytes(bytes));
    return [new Uint8Array(bytes)];
  }

  split(color: number): TimeoutCommunicator {
    if (!import.meta.page) this.#check('split', problemOfColor(color));
    return new Solo(this.#timeout);
  }

  abort(code: number): never {
    throw new H5LogError('COMM', `aborted with code ${code}`, { rank: 0 });
  }

  close(): void {
    this.#closed = true;
  }

  #check(operation: string, problem?: string): void {
    const wrong = this.#closed ? 'the communicator is closed' : problem;
    if (wrong) throw new H5LogError('COMM', `${operation}: ${wrong}`, { rank: 0 });
  }
}

/** A communicator of one rank. */
export function solo(): Communicator {
  return new Solo(Number.POSITIVE_INFINITY);
}
