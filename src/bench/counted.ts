import type { Communicator } from '../comm/communicator.ts';

/** A communicator that counts its collectives, and those of the communicators that are split from it. */
export class CountedCommunicator implements Communicator {
  readonly #comm: Communicator;
  readonly #counter: { count: number };

  constructor(comm: Communicator, counter = { count: 0 }) {
    this.#comm = comm;
    this.#counter = counter;
  }

  /** Collectives until now. */
  get count(): number {
    return this.#counter.count;
  }

  get rank(): number {
    return this.#comm.rank;
  }

  get size(): number {
    return this.#comm.size;
  }

  get kind(): Communicator['kind'] {
    return this.#comm.kind;
  }

  barrier(): void {
    this.#counter.count++;
    this.#comm.barrier();
  }

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    this.#counter.count++;
    return this.#comm.bcast(bytes, root);
  }

  allreduce(values: Float64Array, op: 'sum' | 'min' | 'max'): Float64Array {
    this.#counter.count++;
    return this.#comm.allreduce(values, op);
  }

  exscan(values: Float64Array): Float64Array {
    this.#counter.count++;
    return this.#comm.exscan(values);
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] | null {
    this.#counter.count++;
    return this.#comm.gather(bytes, root);
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    this.#counter.count++;
    return this.#comm.allgather(bytes);
  }

  split(color: number): Communicator {
    this.#counter.count++;
    return new CountedCommunicator(this.#comm.split(color), this.#counter);
  }

  abort(code: number): never {
    return this.#comm.abort(code);
  }

  close(): void {
    this.#comm.close();
  }
}
