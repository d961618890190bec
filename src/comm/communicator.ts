/** Every call is collective, blocking, and made in the same order on all ranks. */
export interface Communicator {
  readonly rank: number;
  readonly size: number;
  readonly kind: 'solo' | 'threads' | 'mpi';
  barrier(): void;
  bcast(bytes: Uint8Array | null, root: number): Uint8Array;
  allreduce(values: Float64Array, op: 'sum' | 'min' | 'max'): Float64Array;
  exscan(values: Float64Array): Float64Array;
  gather(bytes: Uint8Array, root: number): Uint8Array[] | null;
  allgather(bytes: Uint8Array): Uint8Array[];
  split(color: number): Communicator;
  abort(code: number): never;
  close(): void;
}

/** What the communicators of this package can do beyond that. */
export interface BoundedCommunicator extends Communicator {
  /** Milliseconds that a collective waits for the other ranks before it gives up; Infinity unless somebody sets it. Inherited by split. */
  timeout: number;
}

export function canBeBounded(comm: Communicator): comm is BoundedCommunicator {
  return typeof (comm as Partial<BoundedCommunicator>).timeout === 'number';
}

/** A file that the ranks of a communicator write together. */
export interface CollectiveFile {
  /** Every rank calls it, with its own parts, or none; the first failure is thrown on all of them. */
  writeAtAll(parts: readonly Uint8Array[], offset: number): void;
  sync(): void;
  close(): void;
}

/** A communicator that can open such files. */
export interface FileCommunicator extends Communicator {
  openFile(path: string): CollectiveFile;
}

export function canOpenFiles(comm: Communicator): comm is FileCommunicator {
  return typeof (comm as Partial<FileCommunicator>).openFile === 'function';
}
